import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { createFakeClock } from '../../tempering/tempering.testing.ts';
import { auditKeyStore } from './key-store.ts';
import { fakeObjects } from './provenance.testing.ts';

const SECRET = 'temper-audit-key';
const NINETY_DAYS_MS = 90 * 24 * 3_600_000;
const LOST = { code: 'TEMPER_AUDIT_CHAIN_INVALID', message: /temper-audit-key has no usable key.*restore/ };

function fixture() {
  const { client, objects } = fakeObjects();
  const clock = createFakeClock();
  const read = auditKeyStore(client, 'temper-system', clock);
  return { client, objects, clock, read: (isFirst: boolean) => read(isFirst, NEVER_ABORTED) };
}

describe('the keys of the provenance chain', () => {
  it('the first key is created, stays for ninety days, and then signs no more but still verifies', async () => {
    const { clock, read } = fixture();
    const first = await read(true);
    clock.skip(NINETY_DAYS_MS - 1);
    assert.deepEqual(await read(false), first);
    clock.skip(1);
    const second = await read(false);
    assert.notEqual(second.privateKey, first.privateKey);
    assert.equal(second.publicKeys[1], first.publicKeys[0]);
    assert.deepEqual(await read(false), second);
  });

  it('a key that is lost while heads exist is reported, and never replaced', async () => {
    const { objects, read } = fixture();
    await read(true);
    const stored = objects.get(SECRET);
    const { data } = stored as unknown as { data: Record<string, string> };
    const without = (key: string) => ({ ...stored, data: { ...data, [key]: '' } });
    const damaged = { ...stored, data: { ...data, 'signing.key': Buffer.from('key').toString('base64') } };
    const other = fixture();
    await other.read(true);
    const { data: foreign } = other.objects.get(SECRET) as unknown as { data: Record<string, string> };
    const exchanged = { ...stored, data: { ...data, 'signing.key': foreign['signing.key'] } };
    const losses = [undefined, without('signing.key'), without('verification.keys'), damaged, exchanged];
    for (const [index, loss] of losses.entries()) {
      if (loss === undefined) objects.delete(SECRET);
      else objects.set(SECRET, loss as typeof loss & { metadata: { name: string } });
      await assert.rejects(read(false), LOST, `loss ${index}`);
      assert.deepEqual(objects.get(SECRET), loss);
    }
  });

  it('two leaders that rotate at once end with the key of one of them, and the other one fails', async () => {
    const { client, objects, clock, read } = fixture();
    await read(true);
    clock.skip(NINETY_DAYS_MS);
    const other = auditKeyStore(client, 'temper-system', clock);
    const results = await Promise.allSettled([read(false), other(false, NEVER_ABORTED)]);
    assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    const rotated = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    assert.deepEqual([await read(false)], rotated);
    const first = auditKeyStore(client, 'temper-system', clock);
    objects.delete(SECRET);
    const created = await Promise.allSettled([first(true, NEVER_ABORTED), other(true, NEVER_ABORTED)]);
    assert.deepEqual(created.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  });

  it('a rotation that ends before its write, or after it, leaves keys that verify all heads', async () => {
    for (const isWritten of [false, true]) {
      const { client, clock, read } = fixture();
      const before = await read(true);
      clock.skip(NINETY_DAYS_MS);
      const killed = {
        ...client,
        apply: async (...given: Parameters<typeof client.apply>) => {
          if (isWritten) await client.apply(...given);
          throw new Error('killed');
        },
      } as typeof client;
      await assert.rejects(auditKeyStore(killed, 'temper-system', clock)(false, NEVER_ABORTED), /killed/);
      const after = await read(false);
      assert.deepEqual(after.publicKeys.slice(1), before.publicKeys);
      assert.deepEqual(await read(false), after);
    }
  });
});
