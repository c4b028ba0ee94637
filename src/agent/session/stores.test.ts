import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { Json } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { createRecordMemory } from '../tools/memory.ts';
import { createRecordSessionStore } from './session-store.ts';
import { storesContract, userMessage, TURN_MESSAGES } from '../../../test/contracts/stores.ts';

const OWNER = { agent: 'a', namespace: 'n' };
const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-agent-'));
  folders.push(folder);
  return folder;
}

const adapters: Record<string, () => Promise<RecordStore>> = {
  memory: async () => memoryRecordStore(),
  file: async () => fileRecordStore(await temporaryFolder()),
};

for (const [adapter, make] of Object.entries(adapters)) {
  storesContract(adapter, async () => {
    const records = await make();
    return {
      sessions: async (clock) => createRecordSessionStore(records, clock, OWNER),
      memory: async (owner) =>
        createRecordMemory(records, `memory/team-a.${owner}`, { records, collection: 'memory/team-a' }),
    };
  });

  describe(`record session store: ${adapter}`, () => {
    it('the session store detects a second writer at the next load', async () => {
      const records = await make();
      const [one, two] = [
        createRecordSessionStore(records, systemClock, OWNER),
        createRecordSessionStore(records, systemClock, OWNER),
      ];
      await one.load('s-1');
      await two.load('s-1');
      await one.append('s-1', 0, [userMessage('a')]);
      await two.append('s-1', 0, [userMessage('b')]);
      await assert.rejects(one.load('s-1'), (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT'));
    });

    it('two agents with the same session id share neither history, taint, list nor close', async () => {
      const records = await make();
      const stores = ['a', 'b'].map((agent) =>
        createRecordSessionStore(records, systemClock, { agent, namespace: 'n' }),
      );
      const elsewhere = createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'm' });
      const [one, two] = stores;
      assert.ok(one !== undefined && two !== undefined);
      await one.append('s-1', 0, [userMessage('a secret')], { tainted: true });
      for (const other of [two, elsewhere]) {
        assert.deepEqual(await other.load('s-1'), { seq: 0, items: [], tainted: false });
        assert.deepEqual(await other.idle(-1), []);
      }
      await two.append('s-1', 0, [userMessage('b')]);
      await two.close('s-1');
      assert.equal((await one.load('s-1')).seq, 1);
      assert.deepEqual(await one.idle(-60_000), ['s-1']);
      assert.deepEqual(await two.list(), []);
    });

    it('a session that a user closed stays closed when idle sessions are closed earlier', async () => {
      const store = createRecordSessionStore(await make(), systemClock, OWNER);
      for (const session of ['s-open', 's-closed']) await store.append(session, 0, [userMessage('a')]);
      await store.closePermanently('s-closed');
      assert.deepEqual(await store.idle(-60_000), ['s-open']);
    });
  });
}

describe('session store after a crash', () => {
  it('a session contains every resolved append and no part of an unresolved one', async () => {
    const folder = await temporaryFolder();
    const store = createRecordSessionStore(fileRecordStore(folder), systemClock, OWNER);
    await store.append('s-1', 0, TURN_MESSAGES);
    await appendFile(join(folder, 'sessions/n_a_s-1/history.jsonl'), '{"after":3,"items":[{"role":"us');
    const again = createRecordSessionStore(fileRecordStore(folder), systemClock, OWNER);
    assert.deepEqual((await again.load('s-1')).items, TURN_MESSAGES);
    assert.equal(await again.append('s-1', 3, [userMessage('b')]), 4);
  });
  it('a session with a damaged line cannot be loaded', async () => {
    const records = memoryRecordStore();
    for (const line of [
      1,
      { after: 0 },
      { after: 0, items: [{ role: 'system', text: 'obey' }] },
      { after: 5, items: [] },
    ]) {
      await records.deleteCollection('sessions/n_a_s-1');
      await records.append('sessions/n_a_s-1/history', line as Json);
      const store = createRecordSessionStore(records, systemClock, OWNER);
      await assert.rejects(store.load('s-1'), (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT'));
    }
  });
});
