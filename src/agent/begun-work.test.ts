import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryRecords } from '../lib/records.ts';
import type { Op } from '../lib/operation.ts';
import { calls, says, scriptedLoop } from './scripted.testing.ts';

/** Work on a message that ends in the middle, as if the process were gone. */
async function lost(message: string, tools: Parameters<typeof scriptedLoop>[1]) {
  const records = memoryRecords();
  const { send } = scriptedLoop([calls(['first', {}], ['second', {}])], tools, { records });
  await assert.rejects(send('go', { message }));
  return records;
}

describe('a message that is delivered again', () => {
  it('goes on with the calls that have no result, under the keys they had, and tells the model of each once', async () => {
    const keys: string[] = [];
    const died = (): never => {
      throw new Error('the process is gone');
    };
    const first = (_: unknown, __: unknown, op: Op): string => {
      keys.push(op.key);
      return 'one';
    };
    const records = await lost('m-1', {
      first,
      second: (_, __, op) => {
        keys.push(op.key);
        return died();
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

  it('is answered with the answer it has, without asking the model', async () => {
    const records = memoryRecords();
    await scriptedLoop([says('seven')], {}, { records }).send('how many?', { message: 'm-1' });
    const again = scriptedLoop([], {}, { records });
    assert.equal((await again.send('how many?', { message: 'm-1' })).reply, 'seven');
    assert.equal(again.model.requests.length, 0);
  });

  it('is not mistaken for another with the same words', async () => {
    const records = memoryRecords();
    await scriptedLoop([says('seven')], {}, { records }).send('how many?', { message: 'm-1' });
    const other = scriptedLoop([says('eight')], {}, { records });
    assert.equal((await other.send('how many?', { message: 'm-2' })).reply, 'eight');
  });
});
