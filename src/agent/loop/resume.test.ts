import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import type { ModelMessage } from '../../models/port.ts';
import { createRecordSessionStore } from '../session/session-store.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { calls, says, scriptedLoop } from './scripted-loop.testing.ts';

/** Processes a message and fails in the middle, like a crashed process. */
async function interrupted(message: string, tools: Parameters<typeof scriptedLoop>[1]) {
  const records = memoryRecordStore();
  const { send } = scriptedLoop([calls(['first', {}], ['second', {}])], tools, { records });
  await assert.rejects(send('go', { message }));
  return records;
}

describe('redelivery of a message', () => {
  it('a redelivered message repeats only calls without a result, with their original keys, and the model sees each result once', async () => {
    const keys: string[] = [];
    const fail = (): never => {
      throw new Error('the process crashed');
    };
    const first = (_: unknown, __: unknown, op: CallOptions): string => {
      keys.push(op.key);
      return 'one';
    };
    const records = await interrupted('m-1', {
      first,
      second: (_, __, op) => {
        keys.push(op.key);
        return fail();
      },
    });
    const again = scriptedLoop([says('done')], { first, second: (_, __, op) => keys.push(op.key) }, { records });
    const { reply, turns, toolCalls } = await again.send('go', { message: 'm-1' });
    assert.deepEqual({ reply, turns, toolCalls }, { reply: 'done', turns: 2, toolCalls: 2 });
    assert.equal(keys.length, 3);
    assert.equal(keys[2], keys[1]);
    const [request] = again.model.requests;
    assert.deepEqual(
      request?.messages.map((item) => item.role),
      ['user', 'assistant', 'tool', 'tool'],
    );
    assert.ok(request?.messages.every((item) => !('message' in item)));
  });

  it('a stored answer with two calls of one id resumes one of them, once', async () => {
    const records = memoryRecordStore();
    const call = { id: 'same', name: 'first', arguments: '{}' };
    const items = [
      { role: 'user', text: 'go', message: 'm-1' },
      { role: 'assistant', text: '', toolCalls: [call, { ...call, arguments: '{"other":true}' }] },
    ];
    const store = createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'n' });
    await store.append('s-1', 0, items as ModelMessage[]);
    let runs = 0;
    const again = scriptedLoop([says('done')], { first: () => (runs += 1) }, { records });
    assert.equal((await again.send('go', { message: 'm-1' })).reply, 'done');
    assert.equal(runs, 1);
    const [request] = again.model.requests;
    assert.deepEqual(
      request?.messages.flatMap((item) => (item.role === 'assistant' ? item.toolCalls.map(({ id }) => id) : [])),
      ['same'],
    );
  });

  it('a redelivered message with a stored reply returns it without a model call', async () => {
    const records = memoryRecordStore();
    await scriptedLoop([says('seven')], {}, { records }).send('how many?', { message: 'm-1' });
    const again = scriptedLoop([], {}, { records });
    assert.equal((await again.send('how many?', { message: 'm-1' })).reply, 'seven');
    assert.equal(again.model.requests.length, 0);
  });

  it('a message with the same text and another id is a new message', async () => {
    const records = memoryRecordStore();
    await scriptedLoop([says('seven')], {}, { records }).send('how many?', { message: 'm-1' });
    const other = scriptedLoop([says('eight')], {}, { records });
    assert.equal((await other.send('how many?', { message: 'm-2' })).reply, 'eight');
  });
});
