import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import type { Json } from '../../src/lib/json.ts';
import type { ModelMessage } from '../../src/models/port.ts';
import type { Memory, SessionStore } from '../../src/agent/ports.ts';
import { clockAt } from '../support/clocks.ts';

/** Opens the stores of sessions and memory. Each call opens a new instance, as another process would. */
export interface Stores {
  sessions(clock: Clock): Promise<ListingStore>;
  /** The memory of one owner. */
  memory(owner: string): Promise<Memory>;
}

interface ListingStore extends SessionStore {
  list(): Promise<{ session: string }[]>;
  idle(milliseconds: number): Promise<string[]>;
}

export const userMessage = (text: string): ModelMessage => ({ role: 'user', text });
export const TURN_MESSAGES: ModelMessage[] = [
  userMessage('hi'),
  { role: 'assistant', text: '', toolCalls: [{ id: '1', name: 'f', arguments: '{"a":' }] },
  { role: 'tool', toolCallId: '1', name: 'f', text: '{}', isError: true },
];

/** The contract of every adapter of the two stores. `make` returns empty stores. */
export function storesContract(adapter: string, make: () => Promise<Stores>): void {
  describe(`session store contract: ${adapter}`, () => {
    it('the store returns appended items in order, also after a restart', async () => {
      const stores = await make();
      const store = await stores.sessions(systemClock);
      assert.deepEqual(await store.load('s-1'), { seq: 0, items: [], tainted: false });
      assert.equal(await store.append('s-1', 0, TURN_MESSAGES.slice(0, 1)), 1);
      assert.equal(await store.append('s-1', 1, TURN_MESSAGES.slice(1)), 3);
      for (const again of [store, await stores.sessions(systemClock)]) {
        assert.deepEqual(await again.load('s-1'), { seq: 3, items: TURN_MESSAGES, tainted: false });
      }
    });
    it('the store rejects an append whose sequence number does not follow the last append', async () => {
      const stores = await make();
      const store = await stores.sessions(systemClock);
      await store.append('s-1', 0, [userMessage('a')]);
      for (const writer of [store, await stores.sessions(systemClock)]) {
        for (const seq of [0, 2]) {
          await assert.rejects(writer.append('s-1', seq, [userMessage('b')]), (error) =>
            isTemperError(error, 'TEMPER_STATE_CORRUPT'),
          );
        }
      }
      assert.equal((await store.load('s-1')).seq, 1);
    });
    it('one of two concurrent appends at the same sequence number succeeds', async () => {
      const store = await (await make()).sessions(systemClock);
      const both = await Promise.allSettled([
        store.append('s-1', 0, [userMessage('a')]),
        store.append('s-1', 0, [userMessage('b')]),
      ]);
      assert.deepEqual(both.map((outcome) => outcome.status).toSorted(), ['fulfilled', 'rejected']);
      assert.equal((await store.load('s-1')).seq, 1);
    });
    it('the store keeps the taint of a session', async () => {
      const stores = await make();
      const store = await stores.sessions(systemClock);
      await store.append('s-1', 0, [userMessage('a')], { tainted: true });
      await store.append('s-1', 1, [userMessage('b')]);
      assert.equal((await (await stores.sessions(systemClock)).load('s-1')).tainted, true);
      assert.equal((await (await stores.sessions(systemClock)).load('s-1')).private, undefined);
      await store.append('s-1', 2, [userMessage('c')], { private: true });
      await store.append('s-1', 3, [userMessage('d')]);
      assert.equal((await (await stores.sessions(systemClock)).load('s-1')).private, true);
    });
    it('closing a session removes it and keeps the other sessions', async () => {
      const store = await (await make()).sessions(systemClock);
      await store.append('s-1', 0, [userMessage('a')]);
      await store.append('s-10', 0, [userMessage('b')]);
      await store.close('s-1');
      assert.equal((await store.load('s-1')).seq, 0);
      assert.equal((await store.load('s-10')).seq, 1);
      assert.deepEqual(
        (await store.list()).map((info) => info.session),
        ['s-10'],
      );
      assert.equal(await store.append('s-1', 0, [userMessage('again')]), 1);
    });
    it('the store lists sessions that were not used for a given time', async () => {
      let now = Date.parse('2026-11-21T10:00:00Z');
      const clock = clockAt(() => now);
      const store = await (await make()).sessions(clock);
      await store.append('old', 0, [userMessage('a')]);
      await store.append('used', 0, [userMessage('a')]);
      now += 3_600_000;
      await store.append('used', 1, [userMessage('b')]);
      now += 1;
      assert.deepEqual(await store.idle(3_600_000), ['old']);
    });
    it('the store rejects an invalid session id', async () => {
      const store = await (await make()).sessions(systemClock);
      for (const id of ['', '..', 'a/b', '.a']) {
        await assert.rejects(store.load(id), (error) => isTemperError(error, 'TEMPER_SESSION_INVALID'), id);
        await assert.rejects(store.append(id, 0, []), (error) => isTemperError(error, 'TEMPER_SESSION_INVALID'), id);
        await assert.rejects(store.close(id), (error) => isTemperError(error, 'TEMPER_SESSION_INVALID'), id);
      }
    });
  });

  describe(`memory contract: ${adapter}`, () => {
    it('the memory stores values under any key, separately per owner', async () => {
      const stores = await make();
      const memory = await stores.memory('one');
      for (const key of ['self.note', '../x', 'ключ', '.', 'a/b']) await memory.set(key, { key });
      for (const key of ['self.note', '../x', 'ключ', '.', 'a/b'])
        assert.deepEqual((await memory.get(key))?.value, { key });
      assert.equal((await memory.get('other'))?.value, undefined);
      assert.equal((await (await stores.memory('two')).get('self.note'))?.value, undefined);
    });
    it('the memory replaces a value, and distinguishes null from an absent value', async () => {
      const memory = await (await make()).memory('one');
      await memory.set('k', 1);
      await memory.set('k', null);
      assert.equal((await memory.get('k'))?.value, null);
    });
    it('the memory rejects keys and values beyond its limits', async () => {
      const memory = await (await make()).memory('one');
      const wrong: [string, Json][] = [
        ['', 1],
        ['k'.repeat(257), 1],
        ['k', 'x'.repeat(65_536)],
      ];
      for (const [key, value] of wrong) {
        await assert.rejects(memory.set(key, value), (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'));
      }
    });
    it('the memory deletes a value and frees its key', async () => {
      const stores = await make();
      const memory = await stores.memory('one');
      await memory.set('self.a', 1);
      await memory.set('self.b', 2);
      assert.equal(await memory.delete('self.a'), true);
      assert.equal(await memory.delete('self.a'), false);
      for (const again of [memory, await stores.memory('one')]) {
        assert.equal((await again.get('self.a'))?.value, undefined);
        assert.equal((await again.get('self.b'))?.value, 2);
      }
      await memory.set('self.a', 3);
      assert.equal((await memory.get('self.a'))?.value, 3);
      assert.equal(await (await stores.memory('two')).delete('self.b'), false);
      await assert.rejects(memory.delete(''), (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'));
    });
    it('the memory lists readable keys with a prefix, sorted, and says whether there are more', async () => {
      const memory = await (await make()).memory('one');
      for (const key of ['self.b', 'self.a', 'self.secret', 'selfish', 'other']) await memory.set(key, 'text');
      const isReadable = (key: string): boolean => key !== 'self.secret';
      assert.deepEqual(await memory.list('self.', 10, isReadable), {
        keys: ['self.a', 'self.b'],
        complete: true,
        tainted: false,
      });
      assert.deepEqual(await memory.list('self.', 2, isReadable), {
        keys: ['self.a', 'self.b'],
        complete: true,
        tainted: false,
      });
      assert.deepEqual(await memory.list('', 1, isReadable), { keys: ['other'], complete: false, tainted: false });
      assert.deepEqual(await memory.list('none', 5, isReadable), { keys: [], complete: true, tainted: false });
    });
    it('the memory keeps whether a tainted session wrote a value, until it is written again', async () => {
      const memory = await (await make()).memory('one');
      await memory.set('self.a', 'words', { tainted: true });
      await memory.set('self.b', 'words', { tainted: false });
      assert.deepEqual(await memory.get('self.a'), { value: 'words', tainted: true });
      assert.deepEqual(await memory.get('self.b'), { value: 'words', tainted: false });
      const hits = await memory.search('words', 5, () => true);
      const marks = Object.fromEntries(hits.map(({ key, tainted }) => [key, tainted]));
      assert.deepEqual(marks, { 'self.a': true, 'self.b': false });
      assert.equal((await memory.list('self.', 5, () => true)).tainted, true);
      assert.equal((await memory.list('self.b', 5, () => true)).tainted, false);
      await memory.set('self.a', 'other words');
      assert.equal((await memory.get('self.a'))?.tainted, false);
    });
    it('shared keys belong to all owners of a namespace, and all other keys to one', async () => {
      const stores = await make();
      const [one, two] = [await stores.memory('one'), await stores.memory('two')];
      await one.set('shared.plan', 'a plan of one');
      await one.set('sharedness', 'private');
      await one.set('self.plan', 'private plan');
      assert.equal((await two.get('shared.plan'))?.value, 'a plan of one');
      assert.equal((await two.get('sharedness'))?.value, undefined);
      await two.set('shared.plan', 'a plan of two');
      assert.equal((await one.get('shared.plan'))?.value, 'a plan of two');
      assert.deepEqual(
        (await two.search('plan', 5, () => true)).map(({ key }) => key),
        ['shared.plan'],
      );
      assert.deepEqual((await one.list('', 5, () => true)).keys, ['self.plan', 'shared.plan', 'sharedness']);
      assert.equal(await one.delete('shared.plan'), true);
      assert.equal((await two.get('shared.plan'))?.value, undefined);
      assert.deepEqual((await two.list('', 5, () => true)).keys, []);
      await assert.rejects(one.set('shared', 'x'.repeat(8_192)), (error) =>
        isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'),
      );
    });
    it('the memory search matches words of key and value, and ranks rare words and close matches first', async () => {
      const memory = await (await make()).memory('one');
      await memory.set('self.revenue.west', { total: 142875, note: 'fell in the third quarter' });
      await memory.set(
        'self.notes',
        'the west coast office moved; revenue was not touched by the move, said the report',
      );
      await memory.set('self.colour', 'blue');
      assert.deepEqual(
        (await memory.search('West revenue', 5, () => true)).map((hit) => hit.key),
        ['self.revenue.west', 'self.notes'],
      );
      assert.deepEqual(await memory.search('nothing like it', 5, () => true), []);
      assert.equal((await memory.search('revenue', 1, () => true)).length, 1);
      const notes = await memory.search('revenue', 1, (key) => key !== 'self.revenue.west');
      assert.deepEqual(
        notes.map(({ key }) => key),
        ['self.notes'],
        'an unreadable entry takes no place of a readable one',
      );
    });
  });
}
