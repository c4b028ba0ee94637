import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { calls, says, type ScriptedAnswer, scriptedLoop, type ScriptedTool } from '../loop/scripted-loop.testing.ts';
import type { AgentHooks } from './agent-hooks.ts';
import type { HookDirective, HookEvent, HookEventType } from './hook-event.ts';

type Say = (event: HookEvent) => HookDirective | undefined;

/** A loop with one hook at all events, which records them and gives the directives of the test. */
function hookedLoop(answers: ScriptedAnswer[], say: Say = () => undefined, tools: Record<string, ScriptedTool> = {}) {
  const seen: HookEvent[] = [];
  const hooks: AgentHooks = {
    has: () => true,
    async ask(event) {
      seen.push(event);
      return say(event);
    },
    beforeCall: async () => undefined,
    afterCall: async () => undefined,
  };
  const clock = new FakeClock();
  clock.sleep = async () => undefined;
  return { ...scriptedLoop(answers, tools, { hooks, clock }), seen, types: () => seen.map(({ type }) => type) };
}

const failing: ScriptedAnswer = () => {
  throw new TemperError('TEMPER_MODEL_OVERLOADED', 'busy');
};

/** Gives a directive at the first event of the type. */
function once(type: HookEventType, directive: HookDirective): Say {
  let isGiven = false;
  return (event) => {
    if (event.type !== type || isGiven) return undefined;
    isGiven = true;
    return directive;
  };
}

describe('the hooks of a turn', () => {
  it('hooks see the turns and what the model says, before the calls of an answer run', async () => {
    const order: string[] = [];
    const { send, types, seen } = hookedLoop(
      [[{ type: 'reasoning', text: 'hm' }, { type: 'text', text: 'I look.' }, ...calls(['look', {}])], says('done')],
      (event) => void order.push(event.type),
      {
        look() {
          order.push('look');
          return null;
        },
      },
    );
    await send('go');
    assert.deepEqual(types(), ['turn-start', 'reasoning', 'message', 'turn-end', 'turn-start', 'message', 'turn-end']);
    assert.deepEqual(order.slice(0, 5), ['turn-start', 'reasoning', 'message', 'look', 'turn-end']);
    const end = seen.at(-1);
    assert.ok(end?.type === 'turn-end' && end.result === 'done' && end.turnNumber === 2);
    const traced = end.trace.map((entry) => (entry as { type: string; time: string }).type);
    assert.ok(traced.includes('tool-call') && traced.includes('tool-result'), traced.join());
  });

  it('a hook ends the message with its result, also after a turn with calls', async () => {
    const { send, model, events } = hookedLoop(
      [calls(['look', {}]), says('not asked')],
      once('turn-end', { stop: true, result: { n: 1 } }),
      { look: () => null },
    );
    const { reply, finishReason } = await send('go');
    assert.deepEqual([reply, finishReason, model.requests.length], ['{"n":1}', 'complete', 1]);
    assert.equal(events.at(-1)?.type, 'session-end');
  });

  it('a message after a hook ended one gets a history that ends with its result', async () => {
    const { send, model } = hookedLoop(
      [calls(['look', {}]), says('next')],
      once('turn-end', { stop: true, result: 'mine' }),
      {
        look: () => null,
      },
    );
    await send('go');
    await send('and');
    assert.deepEqual(
      model.requests[1]?.messages.map(({ role, text }) => [role, text]),
      [
        ['user', 'go'],
        ['assistant', ''],
        ['tool', 'null'],
        ['assistant', 'mine'],
        ['user', 'and'],
      ],
    );
  });

  it('a hook lets a finished message go on, with its message or a short one', async () => {
    for (const [message, text] of [
      ['check it', 'check it'],
      [undefined, 'Continue.'],
    ] as const) {
      const directive: HookDirective = message === undefined ? { continue: true } : { continue: true, message };
      const { send, model } = hookedLoop([says('draft'), says('checked')], once('turn-end', directive));
      assert.equal((await send('go')).reply, 'checked');
      assert.equal(model.requests[1]?.messages.at(-1)?.text, text);
    }
  });

  it('a hook that never ends a message meets the limit of turns', async () => {
    const { send, model } = hookedLoop([says('again')], (event) =>
      event.type === 'turn-end' ? { continue: true } : undefined,
    );
    await assert.rejects(send('go'), (error) => isTemperError(error, 'TEMPER_TURN_LIMIT'));
    assert.equal(model.requests.length, 31, '30 turns and the closing one');
  });

  it('a redelivered message that was answered asks the hooks at its end again', async () => {
    const { send, records } = hookedLoop([says('answer')]);
    await send('go', { message: 'm-1' });
    const later = hookedLoop([says('more')], once('turn-end', { continue: true, message: 'more' }));
    const { send: again, model } = scriptedLoop([says('more')], {}, { records, hooks: hooksOf(later) });
    assert.equal((await again('go', { message: 'm-1' })).reply, 'more');
    assert.equal(model.requests.length, 1);
  });
});

/** The hooks of another loop. */
function hooksOf({ seen }: { seen: HookEvent[] }): AgentHooks {
  const say = once('turn-end', { continue: true, message: 'more' });
  return {
    has: () => true,
    async ask(event) {
      seen.push(event);
      return say(event);
    },
    beforeCall: async () => undefined,
    afterCall: async () => undefined,
  };
}

describe('a model call that fails', () => {
  it('a hook has a failed model call repeated, with growing delays that are reported', async () => {
    const { send, seen, events } = hookedLoop([failing, failing, says('at last')], (event) =>
      event.type === 'error' ? { continue: true } : undefined,
    );
    assert.equal((await send('go')).reply, 'at last');
    const attempts = seen.flatMap((event): Json[] => (event.type === 'error' ? [event.attempt] : []));
    assert.deepEqual(attempts, [1, 2]);
    const retry = { type: 'retry', model: 'scripted/model', code: 'TEMPER_MODEL_OVERLOADED' };
    assert.deepEqual(
      events.filter(({ type }) => type === 'retry'),
      [
        { ...retry, attempt: 2, milliseconds: 1_000 },
        { ...retry, attempt: 3, milliseconds: 2_000 },
      ],
    );
  });

  it('a failed model call is repeated five times at most', async () => {
    const { send, model } = hookedLoop([failing], (event) => (event.type === 'error' ? { continue: true } : undefined));
    await assert.rejects(send('go'), (error) => isTemperError(error, 'TEMPER_MODEL_OVERLOADED'));
    assert.equal(model.requests.length, 6);
  });

  it('a hook answers in the place of a failed model call', async () => {
    const { send, events } = hookedLoop([failing], once('error', { stop: true, result: 'no model today' }));
    assert.equal((await send('go')).reply, 'no model today');
    assert.ok(events.some((event) => event.type === 'error' && event.attempt === 1));
  });

  it('without a directive the failure ends the message', async () => {
    const { send, types } = hookedLoop([failing]);
    await assert.rejects(send('go'), /busy/);
    assert.deepEqual(types(), ['turn-start', 'error']);
  });
});
