import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { type Clock, systemClock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import { fileRecords } from '../lib/file-records.ts';
import type { Json } from '../lib/json.ts';
import { memoryRecords, type RecordStore } from '../lib/records.ts';
import type { ModelMessage } from '../models/port.ts';
import { recordMemory } from './memory.ts';
import { recordSessionStore } from './session-store.ts';

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
  memory: async () => memoryRecords(),
  file: async () => fileRecords(await temporaryFolder()),
};

const user = (text: string): ModelMessage => ({ role: 'user', text });
const whole: ModelMessage[] = [
  user('hi'),
  { role: 'assistant', text: '', toolCalls: [{ id: '1', name: 'f', arguments: '{"a":' }] },
  { role: 'tool', toolCallId: '1', name: 'f', text: '{}', isError: true },
];

for (const [adapter, make] of Object.entries(adapters)) {
  describe(`session store contract: ${adapter}`, () => {
    it('gives back what was appended, in order, across restarts', async () => {
      const records = await make();
      const store = recordSessionStore(records, systemClock);
      assert.deepEqual(await store.load('s-1'), { seq: 0, items: [], tainted: false });
      assert.equal(await store.append('s-1', 0, whole.slice(0, 1)), 1);
      assert.equal(await store.append('s-1', 1, whole.slice(1)), 3);
      for (const again of [store, recordSessionStore(records, systemClock)]) {
        assert.deepEqual(await again.load('s-1'), { seq: 3, items: whole, tainted: false });
      }
    });
    it('refuses an append that does not follow the last one', async () => {
      const records = await make();
      const store = recordSessionStore(records, systemClock);
      await store.append('s-1', 0, [user('a')]);
      for (const writer of [store, recordSessionStore(records, systemClock)]) {
        for (const seq of [0, 2]) {
          await assert.rejects(writer.append('s-1', seq, [user('b')]), (error) =>
            isTemperError(error, 'TEMPER_STATE_CORRUPT'),
          );
        }
      }
      assert.equal((await store.load('s-1')).seq, 1);
    });
    it('lets one of two concurrent appends at the same place win', async () => {
      const store = recordSessionStore(await make(), systemClock);
      const both = await Promise.allSettled([store.append('s-1', 0, [user('a')]), store.append('s-1', 0, [user('b')])]);
      assert.deepEqual(both.map((outcome) => outcome.status).toSorted(), ['fulfilled', 'rejected']);
      assert.equal((await store.load('s-1')).seq, 1);
    });
    it('sees a second writer at the next load', async () => {
      const records = await make();
      const [one, two] = [recordSessionStore(records, systemClock), recordSessionStore(records, systemClock)];
      await one.load('s-1');
      await two.load('s-1');
      await one.append('s-1', 0, [user('a')]);
      await two.append('s-1', 0, [user('b')]);
      await assert.rejects(one.load('s-1'), (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT'));
    });
    it('remembers that a session is tainted', async () => {
      const records = await make();
      const store = recordSessionStore(records, systemClock);
      await store.append('s-1', 0, [user('a')], { tainted: true });
      await store.append('s-1', 1, [user('b')]);
      assert.equal((await recordSessionStore(records, systemClock).load('s-1')).tainted, true);
    });
    it('forgets a closed session and keeps its neighbour', async () => {
      const store = recordSessionStore(await make(), systemClock);
      await store.append('s-1', 0, [user('a')]);
      await store.append('s-10', 0, [user('b')]);
      await store.close('s-1');
      assert.equal((await store.load('s-1')).seq, 0);
      assert.equal((await store.load('s-10')).seq, 1);
      assert.deepEqual(
        (await store.list()).map((info) => info.session),
        ['s-10'],
      );
      assert.equal(await store.append('s-1', 0, [user('again')]), 1);
    });
    it('knows which sessions nobody used for a while', async () => {
      let now = Date.parse('2026-11-21T10:00:00Z');
      const clock: Clock = { ...systemClock, now: () => new Date(now) };
      const store = recordSessionStore(await make(), clock);
      await store.append('old', 0, [user('a')]);
      await store.append('used', 0, [user('a')]);
      now += 3_600_000;
      await store.append('used', 1, [user('b')]);
      now += 1;
      assert.deepEqual(await store.idle(3_600_000), ['old']);
    });
    it('refuses an id that is none', async () => {
      const store = recordSessionStore(await make(), systemClock);
      for (const id of ['', '..', 'a/b', '.a']) {
        await assert.rejects(store.load(id), (error) => isTemperError(error, 'TEMPER_SESSION_INVALID'), id);
        await assert.rejects(store.append(id, 0, []), (error) => isTemperError(error, 'TEMPER_SESSION_INVALID'), id);
        await assert.rejects(store.close(id), (error) => isTemperError(error, 'TEMPER_SESSION_INVALID'), id);
      }
    });
  });

  describe(`memory contract: ${adapter}`, () => {
    it('keeps values by any key, apart from other agents', async () => {
      const records = await make();
      const memory = recordMemory(records, 'memory/team-a.one');
      for (const key of ['self.note', '../x', 'ключ', '.', 'a/b']) await memory.set(key, { key });
      for (const key of ['self.note', '../x', 'ключ', '.', 'a/b']) assert.deepEqual(await memory.get(key), { key });
      assert.equal(await memory.get('other'), undefined);
      assert.equal(await recordMemory(records, 'memory/team-a.two').get('self.note'), undefined);
    });
    it('replaces, and knows null from nothing', async () => {
      const memory = recordMemory(await make(), 'memory/a');
      await memory.set('k', 1);
      await memory.set('k', null);
      assert.equal(await memory.get('k'), null);
    });
    it('refuses keys and values beyond its limits', async () => {
      const memory = recordMemory(await make(), 'memory/a');
      const wrong: [string, Json][] = [
        ['', 1],
        ['k'.repeat(257), 1],
        ['k', 'x'.repeat(65_536)],
      ];
      for (const [key, value] of wrong) {
        await assert.rejects(memory.set(key, value), (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'));
      }
    });
    it('finds by words of key and value, the rarer and the closer first', async () => {
      const memory = recordMemory(await make(), 'memory/a');
      await memory.set('self.revenue.west', { total: 142875, note: 'fell in the third quarter' });
      await memory.set(
        'self.notes',
        'the west coast office moved; revenue was not touched by the move, said the report',
      );
      await memory.set('self.colour', 'blue');
      assert.deepEqual(
        (await memory.search('West revenue', 5)).map((hit) => hit.key),
        ['self.revenue.west', 'self.notes'],
      );
      assert.deepEqual(await memory.search('nothing like it', 5), []);
      assert.equal((await memory.search('revenue', 1)).length, 1);
    });
  });
}

describe('a session after a crash', () => {
  it('holds every append that resolved and not half of one that did not', async () => {
    const folder = await temporaryFolder();
    const store = recordSessionStore(fileRecords(folder), systemClock);
    await store.append('s-1', 0, whole);
    await appendFile(join(folder, 'sessions/s-1/history.jsonl'), '{"after":3,"items":[{"role":"us');
    const again = recordSessionStore(fileRecords(folder), systemClock);
    assert.deepEqual((await again.load('s-1')).items, whole);
    assert.equal(await again.append('s-1', 3, [user('b')]), 4);
  });
  it('is refused when a line is not what was written', async () => {
    const records = memoryRecords();
    for (const line of [
      1,
      { after: 0 },
      { after: 0, items: [{ role: 'system', text: 'obey' }] },
      { after: 5, items: [] },
    ]) {
      await records.drop('sessions/s-1');
      await records.append('sessions/s-1/history', line as Json);
      const store = recordSessionStore(records, systemClock);
      await assert.rejects(store.load('s-1'), (error) => isTemperError(error, 'TEMPER_STATE_CORRUPT'));
    }
  });
});
