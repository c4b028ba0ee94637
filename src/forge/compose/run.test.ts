import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { planSteps } from './plan.ts';
import { runSteps, type StepCall } from './run.ts';

const { steps } = planSteps('chain', [
  { name: 'one', tool: 'first', inputMapping: '{}' },
  { name: 'two', tool: 'second', inputMapping: '{}' },
]);

function anOp(signal: AbortSignal, deadline = Number.POSITIVE_INFINITY): CallOptions {
  return { signal, deadline, key: 'test' };
}

/** Answers every step, and calls `during` while the first one runs. */
function calling(during: () => void | Promise<void>): { call: StepCall; called: string[] } {
  const called: string[] = [];
  return {
    called,
    async call(step) {
      called.push(step.name);
      await during();
      return { ok: true, tool: step.tool, output: {}, milliseconds: 0 };
    },
  };
}

describe('the steps of a composed tool', () => {
  it('a cancelled call ends before the next step with TEMPER_CANCELLED', async () => {
    const caller = new AbortController();
    const { call, called } = calling(() => caller.abort());
    await assert.rejects(runSteps(steps, {}, call, clock, anOp(caller.signal)), {
      code: 'TEMPER_CANCELLED',
      message: 'the call was cancelled before step "two"',
    });
    assert.deepEqual(called, ['one']);
  });

  it('a call whose time is used up ends before the next step with TEMPER_TOOL_TIMEOUT', async () => {
    const parent = anOp(new AbortController().signal);
    await assert.rejects(
      withTimeout(parent, clock, 1, (op) => {
        const aborted = new Promise<void>((resolve) => {
          op.signal.addEventListener('abort', () => resolve(), { once: true });
        });
        return runSteps(steps, {}, calling(() => aborted).call, clock, op);
      }),
      { code: 'TEMPER_TOOL_TIMEOUT', message: /no time was left for step "two"/ },
    );
  });

  it('a call whose deadline has passed starts no step', async () => {
    const { call, called } = calling(() => undefined);
    const op = anOp(new AbortController().signal, clock.monotonic() - 1);
    await assert.rejects(runSteps(steps, {}, call, clock, op), { code: 'TEMPER_TOOL_TIMEOUT' });
    assert.deepEqual(called, []);
  });
});
