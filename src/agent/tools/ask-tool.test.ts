import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { AskWait, MessageDraft, Task, TaskSender } from '../../bus/port.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { Decision } from '../../policy/types.ts';
import type { CallContext } from '../../tools/contract.ts';
import { askTools } from './ask-tool.ts';

const ANSWERED: Task = { ticket: 't-1', agent: 'b', state: 'Answered', text: '42', finishReason: 'complete' };

function setup(task: Task, effect: Decision['effect'] = 'Allow', timeoutMs = 60_000, tainted = false) {
  const clock = new FakeClock();
  const asked: { draft: MessageDraft; wait: AskWait; key: string }[] = [];
  /** Of each answer, whether it comes from a tainted session. */
  const answers: boolean[] = [];
  const read: { ticket: string; waitMs: number }[] = [];
  const tasks: TaskSender = {
    ask: async (draft, wait, { key }) => {
      asked.push({ draft, wait, key });
      return task;
    },
    task: async (ticket, waitMs) => {
      read.push({ ticket, waitMs });
      return task;
    },
  };
  const decide = (): Decision => ({ effect, rule: 'grant.messages', reason: 'receiver not granted', risk: 'low' });
  const [ask, get] = askTools({
    tasks: () => tasks,
    clock,
    decide,
    isTainted: () => tainted,
    onAnswer: (_, isTainted) => answers.push(isTainted),
  });
  const context: CallContext = {
    agent: 'a',
    namespace: 'n',
    session: 's-1',
    rootMessage: 'm-1',
    stack: [],
    origin: 'Agent',
    op: { signal: NEVER_ABORTED, deadline: clock.monotonic() + timeoutMs, key: 'call-1' },
    invoke: () => Promise.reject(new Error('no nested calls in this test')),
  };
  const call = (tool: typeof ask, input: Json) => tool?.call(input, context);
  return { asked, read, answers, ask: (input: Json) => call(ask, input), get: (input: Json) => call(get, input) };
}

describe('agent_message and task_get', () => {
  it('agent_message waits as long as its call may take, and returns the answer', async () => {
    const { ask, asked } = setup(ANSWERED);
    assert.deepEqual(await ask({ to: 'b', text: 'how much?' }), { ticket: 't-1', state: 'Answered', answer: '42' });
    assert.deepEqual(asked, [
      { draft: { to: 'b', session: 's-1', text: 'how much?' }, wait: { milliseconds: 58_000 }, key: 'call-1' },
    ]);
  });

  it('a question carries the taint of its session, and each answer or failure reports that of the answering one', async () => {
    const tainted = setup({ ...ANSWERED, tainted: true }, 'Allow', 60_000, true);
    await tainted.ask({ to: 'b', text: 'how much?' });
    await tainted.get({ ticket: 't-1' });
    assert.equal(tainted.asked[0]?.draft.tainted, true);
    assert.deepEqual(tainted.answers, [true, true]);
    const failed = setup({ ticket: 't-1', agent: 'b', state: 'Failed', reason: 'obey me', tainted: true });
    await failed.get({ ticket: 't-1' });
    assert.deepEqual(failed.answers, [true]);
    const pending = setup({ ticket: 't-1', agent: 'b', state: 'Pending' });
    await pending.ask({ to: 'b', text: 'x' });
    assert.deepEqual([pending.asked[0]?.draft.tainted, pending.answers], [undefined, []]);
  });

  it('agent_message with a wait of its own waits no longer, and returns a ticket', async () => {
    const { ask, asked } = setup({ ticket: 't-1', agent: 'b', state: 'Pending' });
    assert.deepEqual(await ask({ to: 'b', text: 'x', session: 'work', wait: 5 }), { ticket: 't-1', state: 'Pending' });
    assert.deepEqual(asked[0]?.wait, { milliseconds: 5_000, stated: 5 });
    assert.equal(asked[0]?.draft.session, 'work');
  });

  it('task_get does not wait unless the call says so', async () => {
    const { get, read } = setup({ ...ANSWERED, finishReason: 'truncated' });
    assert.deepEqual(await get({ ticket: 't-1' }), { ticket: 't-1', state: 'Answered', answer: '42', truncated: true });
    await get({ ticket: 't-1', wait: 3 });
    assert.deepEqual(read, [
      { ticket: 't-1', waitMs: 0 },
      { ticket: 't-1', waitMs: 3_000 },
    ]);
  });

  it('a failed task names the reason and the code', async () => {
    const { get } = setup({ ticket: 't-1', agent: 'b', state: 'Failed', code: 'TEMPER_TIMEOUT', reason: 'too late' });
    assert.deepEqual(await get({ ticket: 't-1' }), {
      ticket: 't-1',
      state: 'Failed',
      reason: 'too late (TEMPER_TIMEOUT)',
    });
  });

  it('agent_message asks no agent that the policy denies, and fails in a run of one agent', async () => {
    const { ask, asked } = setup(ANSWERED, 'Deny');
    await assert.rejects(
      async () => ask({ to: 'b', text: 'x' }),
      (error) => isTemperError(error, 'TEMPER_POLICY_DENIED'),
    );
    assert.deepEqual(asked, []);
    const clock = new FakeClock();
    const decide = (): Decision => ({ effect: 'Allow', rule: '', reason: '', risk: 'low' });
    const op = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'k' };
    const [alone] = askTools({ clock, decide, isTainted: () => false, onAnswer: () => assert.fail() });
    const context = { session: 's-1', op } as CallContext;
    await assert.rejects(
      async () => alone?.call({ to: 'b', text: 'x' }, context),
      (error) => isTemperError(error, 'TEMPER_NOT_FOUND'),
    );
  });
});
