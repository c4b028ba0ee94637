import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { SignedHead } from '../../audit/stream-chain.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import { newestHead } from './audit-head.ts';

const headAt = (sequence: number): SignedHead => ({
  sequence,
  records: sequence,
  digest: 'sha256:0',
  time: '2026-03-01T09:21:00.000Z',
  key: 'k',
  signature: 's',
});

function newestOf(data: Record<string, string> | undefined) {
  const client = {
    get: async (_type: unknown, place: object) => {
      assert.deepEqual(place, { namespace: 'temper-system', name: 'temper-audit-heads' });
      return data === undefined ? undefined : { metadata: {}, data };
    },
  } as unknown as Pick<KubeReader, 'get'>;
  return newestHead(client, 'temper-system', NEVER_ABORTED);
}

describe('the newest signed head that a gateway writes to Git', () => {
  it('the last head of the ConfigMap of the release is the newest', async () => {
    const heads = JSON.stringify([headAt(0), headAt(7), headAt(9)]);
    assert.deepEqual(await newestOf({ 'heads.json': heads }), headAt(9));
  });

  it('a release without heads, or with unreadable ones, has none', async () => {
    for (const data of [undefined, {}, { 'heads.json': 'heads' }, { 'heads.json': '[]' }])
      assert.equal(await newestOf(data), undefined);
    const refuse = { get: () => assert.fail('no namespace is known') } as unknown as Pick<KubeReader, 'get'>;
    assert.equal(await newestHead(refuse, undefined, NEVER_ABORTED), undefined);
  });
});
