import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { proxyNote } from './proxy-note.ts';

const OFFLINE = { spec: {} };
const ONLINE = { spec: { grants: { network: ['api.example.com'] } } };
const PROXY = 'http://user:secret@proxy.example:3128';

describe('the note about a proxy of the environment', () => {
  it('a proxy that Node does not read is named with what to set', () => {
    for (const name of ['HTTPS_PROXY', 'https_proxy']) {
      const note = proxyNote({ [name]: PROXY }, [OFFLINE]) ?? '';
      assert.match(note, new RegExp(`^${name} has no effect: set NODE_USE_ENV_PROXY=1`));
      assert.doesNotMatch(note, /secret|proxy\.example/);
    }
  });

  it('a proxy for model providers is named when agents have grants for hosts, whose connections it does not serve', () => {
    const environment = { HTTPS_PROXY: PROXY, NODE_USE_ENV_PROXY: '1' };
    assert.equal(proxyNote(environment, [OFFLINE]), undefined);
    assert.match(proxyNote(environment, [OFFLINE, ONLINE]) ?? '', /^HTTPS_PROXY serves model providers alone: tools/);
  });

  it('without a proxy there is no note', () => {
    assert.equal(proxyNote({ HTTPS_PROXY: '', NODE_USE_ENV_PROXY: '1' }, [ONLINE]), undefined);
  });
});
