import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { systemClock } from '../../lib/clock.ts';
import { ToolCallLimiter } from './tool-call-limiter.ts';

const OP = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'call' };

describe('the tool call limit of a pod', () => {
  it('the pod refuses a tool call beyond the limit of the clock minute and grants it in the next one', async () => {
    let time = new Date('2031-05-04T10:59:30.000Z');
    const minute = new ToolCallLimiter({ ...systemClock, now: () => time });
    const [limiter, other] = [minute.ledger(2), minute.ledger(2)];
    assert.deepEqual(
      [(await limiter.reserve({ toolCalls: 1 }, OP)).granted, (await other.reserve({ toolCalls: 1 }, OP)).granted],
      [true, true],
    );
    assert.deepEqual(await limiter.reserve({ toolCalls: 1 }, OP), {
      granted: false,
      quota: 'spec.quotas.toolCallsPerMinute',
      limit: 2,
      used: 2,
      resumesAt: '2031-05-04T11:00:00.000Z',
    });
    assert.equal((await limiter.reserve({ inputTokens: 5 }, OP)).granted, true, 'a model call is not a tool call');
    time = new Date('2031-05-04T11:00:00.000Z');
    assert.equal((await limiter.reserve({ toolCalls: 1 }, OP)).granted, true);
    assert.equal((await limiter.reserve({ toolCalls: 1 }, OP)).granted, true);
    assert.equal((await limiter.reserve({ toolCalls: 1 }, OP)).granted, false);
  });

  it('without a limit the pod counts and refuses nothing', async () => {
    const limiter = new ToolCallLimiter(systemClock).ledger();
    for (let call = 0; call < 1_000; call += 1)
      assert.equal((await limiter.reserve({ toolCalls: 1 }, OP)).granted, true);
  });
});
