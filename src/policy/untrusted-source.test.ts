import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UNTRUSTED_SOURCES } from '../api/v1alpha1/actions.ts';
import { isUntrustedSource } from './untrusted-source.ts';

describe('the sources of messages that taint a session', () => {
  it('messages from outside the namespace taint by default, and those of users and agents do not', () => {
    const sources = [undefined, 'User', 'Agent', 'Reply', 'Schedule', 'Trigger', 'Peer'];
    assert.deepEqual(
      sources.filter((source) => isUntrustedSource(source, {})),
      ['Trigger', 'Peer'],
    );
  });

  it('a policy names the sources that taint, also none', () => {
    for (const source of UNTRUSTED_SOURCES) {
      assert.equal(isUntrustedSource(source, { tainted: { sources: [source] } }), true);
      assert.equal(isUntrustedSource(source, { tainted: { sources: [] } }), false);
    }
  });
});
