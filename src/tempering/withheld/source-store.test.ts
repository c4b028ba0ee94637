import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { createFakeClock } from '../tempering.testing.ts';
import { openSourceStore, SOURCES } from './source-store.ts';

const derive = () => Buffer.alloc(32, 1);
const isCorrupt = (error: unknown): boolean => isTemperError(error, 'TEMPER_STATE_CORRUPT');

describe('the encrypted store of sources', () => {
  it('a source is stored encrypted, read again by another process, and deleted', async () => {
    const [records, clock] = [memoryRecordStore(), createFakeClock()];
    const store = await openSourceStore({ records, clock, derive });
    await store.put(SOURCES, 'one', 'the secret source');
    await store.put(SOURCES, 'two', 'the secret source');
    const stored = await records.list(SOURCES);
    assert.ok(!JSON.stringify(stored).includes('secret'));
    assert.equal(new Set(stored.map(({ value }) => textAt(value, ['nonce']))).size, 2, 'no nonce is used twice');
    const again = await openSourceStore({ records, clock, derive });
    assert.equal(await again.get(SOURCES, 'one'), 'the secret source');
    await again.delete(SOURCES, 'one');
    assert.equal(await again.get(SOURCES, 'one'), undefined);
  });

  it('a changed or moved source, and one of another user, cannot be read', async () => {
    const [records, clock] = [memoryRecordStore(), createFakeClock()];
    const store = await openSourceStore({ records, clock, derive });
    await store.put(SOURCES, 'one', 'text');
    const value = (await records.get(SOURCES, 'one')) as Record<string, Json>;
    await records.put(SOURCES, 'moved', value);
    await assert.rejects(store.get(SOURCES, 'moved'), isCorrupt);
    await records.put(SOURCES, 'changed', { ...value, data: Buffer.alloc(20).toString('base64') });
    await assert.rejects(store.get(SOURCES, 'changed'), isCorrupt);
    const other = await openSourceStore({ records, clock, derive: () => Buffer.alloc(32, 2) });
    await assert.rejects(other.get(SOURCES, 'one'), isCorrupt);
  });

  it('a key is replaced after 90 days, and sources of earlier releases are encrypted', async () => {
    const [records, clock] = [memoryRecordStore(), createFakeClock()];
    await records.put(SOURCES, 'plain', { source: 'stored as plain text' });
    const first = await openSourceStore({ records, clock, derive });
    await first.put(SOURCES, 'one', 'text');
    const keyOf = async (name: string) => textAt(await records.get(SOURCES, name), ['key']);
    const before = await keyOf('one');
    assert.equal(await keyOf('plain'), before);
    clock.skip(91 * 24 * 3_600_000);
    const second = await openSourceStore({ records, clock, derive });
    assert.notEqual(await keyOf('one'), before);
    assert.deepEqual(await Promise.all(['one', 'plain'].map((name) => second.get(SOURCES, name))), [
      'text',
      'stored as plain text',
    ]);
    const keys = (await records.get('source-keys', 'keys')) as { keys: Json[] };
    assert.equal(keys.keys.length, 1, 'the old key is gone');
  });
});
