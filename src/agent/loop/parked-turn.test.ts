import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { calls, says, scriptedLoop, WaitsFor } from './scripted-loop.testing.ts';

describe('a parked turn', () => {
  it('the other calls of the answer run once and keep their results, and the decision runs the parked call with its key', async () => {
    const records = memoryRecordStore();
    const made: string[] = [];
    const keys: string[] = [];
    let isApproved = false;
    const tools: Parameters<typeof scriptedLoop>[1] = {
      read: () => made.push('read'),
      guarded: (_, __, { key }) => {
        keys.push(key);
        if (!isApproved) throw new WaitsFor('guarded-1');
        return made.push('guarded');
      },
    };
    const first = scriptedLoop([says(''), calls(['read', {}], ['guarded', {}])], tools, { records });
    const handled = await first.send('go', { message: 'm-1' });
    assert.deepEqual([handled.reply, handled.parked], ['', ['guarded-1']]);
    assert.deepEqual(made, ['read']);
    assert.deepEqual(
      first.events.flatMap((event) => (event.type === 'turn-parked' ? event.requests : [])),
      ['guarded-1'],
    );

    const undecided = await scriptedLoop([], tools, { records }).send('go', { message: 'm-1' });
    assert.deepEqual(undecided.parked, ['guarded-1'], 'a second attempt before the decision asks no model');
    isApproved = true;
    const last = scriptedLoop([says('done')], tools, { records });
    const { reply, parked } = await last.send('go', { message: 'm-1' });
    assert.deepEqual({ reply, parked }, { reply: 'done', parked: undefined });
    assert.deepEqual(made, ['read', 'guarded']);
    assert.equal(new Set(keys).size, 1, 'each attempt has the idempotency key of the call');
    assert.equal(keys.length, 3);
    const roles = last.model.requests[0]?.messages.map((item) => item.role);
    assert.deepEqual(roles?.slice(-3), ['assistant', 'tool', 'tool']);
  });

  it('the calls after a parked forge wait for it', async () => {
    const made: string[] = [];
    const { send } = scriptedLoop([calls(['forge_tool', {}], ['doubler', {}])], {
      forge_tool: () => {
        throw new WaitsFor('forge_tool-1');
      },
      doubler: () => made.push('doubler'),
    });
    assert.deepEqual((await send('go', { message: 'm-1' })).parked, ['forge_tool-1']);
    assert.deepEqual(made, []);
  });
});
