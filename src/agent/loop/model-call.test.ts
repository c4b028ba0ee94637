import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { ModelEvent } from '../../models/port.ts';
import { anAgent, calls, says, scriptedLoop } from './scripted-loop.testing.ts';

const PIECE = 'x'.repeat(50_000);
const PIECES: Record<string, ModelEvent> = {
  text: { type: 'text', text: PIECE },
  reasoning: { type: 'reasoning', text: PIECE },
  'tool calls': { type: 'tool-call', call: { id: 'c', name: 'f', arguments: PIECE } },
};

describe('the model of a message', () => {
  it('all turns of a message have the model of its complexity, with the window and the counts of that model', async () => {
    const agent = anAgent();
    agent.spec.model.routing = { simple: 'test/small', complex: 'test/large' };
    const windows: string[] = [];
    const contextTokens = (model: string): number => 100_000 + windows.push(model);
    const { send, model, events } = scriptedLoop(
      [says('one'), calls(['read', {}]), says('two')],
      { read: () => 'text' },
      { contextTokens },
    );
    await send('hi', { agent });
    await send('x'.repeat(4_000), { agent });
    assert.deepEqual(
      model.requests.map((request) => request.model),
      ['test/small', 'test/large', 'test/large'],
    );
    assert.deepEqual(windows, ['test/small', 'test/large', 'test/large']);
    assert.deepEqual(
      events.flatMap((event) => (event.type === 'model-routed' ? [[event.complexity, event.points]] : [])),
      [
        ['Simple', 20],
        ['Complex', 1_021],
      ],
    );
  });
});

describe('an answer that is longer than any model writes', () => {
  for (const [what, piece] of Object.entries(PIECES)) {
    it(`endless ${what} end with an error, are not stored, and the next message is answered`, async () => {
      let read = 0;
      async function* endless(): AsyncGenerator<ModelEvent> {
        for (;;) {
          read += 1;
          yield piece;
        }
      }
      const { send, records, model } = scriptedLoop([() => endless(), says('fine')]);
      await assert.rejects(send('go'), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MODEL_FORMAT'));
        assert.match(error.message, /more than 1,000,000 characters.*lower spec\.model\.maxOutputTokens/);
        return true;
      });
      assert.ok(read <= 21, `${read} pieces`);
      assert.equal((await send('again')).reply, 'fine');
      assert.ok(!JSON.stringify(model.requests.at(-1)).includes('xxx'));
      assert.ok(!JSON.stringify(await records.list('sessions')).includes('xxx'));
    });
  }
});
