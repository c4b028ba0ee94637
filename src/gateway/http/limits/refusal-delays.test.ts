import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import type { Clock } from '../../../lib/clock.ts';
import { FakeClock } from '../../../lib/fake-clock.testing.ts';
import type { RequestContext } from '../request-context.ts';
import { RefusalDelays } from './refusal-delays.ts';

function setup() {
  const time = new FakeClock();
  const delays: number[] = [];
  const clock: Clock = {
    now: () => time.now(),
    monotonic: () => time.monotonic(),
    sleep: async (milliseconds, signal) => {
      delays.push(milliseconds);
      signal.throwIfAborted();
    },
  };
  const refusals = new RefusalDelays(clock, { atOnce: { perSecond: 10, burst: 3 }, maxDelayMs: 1_000 });
  /** The delay of each of so many error responses. */
  const delaysOf = async (context: RequestContext, count: number) => {
    const from = delays.length;
    for (let index = 0; index < count; index += 1) await refusals.wait(context);
    return delays.slice(from);
  };
  return { time, delaysOf };
}

function contextOf(agentUid: string, more: Partial<RequestContext> = {}): RequestContext {
  const pod = { kind: 'pod', namespace: 'team-a', podName: 'p', podUid: 'p', agent: agentUid, agentUid } as const;
  return { address: '127.0.0.1', disconnected: NEVER_ABORTED, logFields: {}, pod, ...more };
}

describe('RefusalDelays', () => {
  it('error responses beyond the burst of a caller come later and later, and those of others at once', async () => {
    const { delaysOf } = setup();
    assert.deepEqual(await delaysOf(contextOf('a'), 6), [100, 200, 300]);
    assert.deepEqual(await delaysOf(contextOf('b'), 3), []);
  });

  it('a caller waits a second at most, and none soon after it has stopped', async () => {
    const { time, delaysOf } = setup();
    const delays = await delaysOf(contextOf('a'), 1_000);
    assert.deepEqual([delays.at(-1), Math.max(...delays)], [1_000, 1_000]);
    time.skip(2_000);
    assert.deepEqual(await delaysOf(contextOf('a'), 3), []);
  });

  it('without a valid token the address counts, and the egress proxy never waits', async () => {
    const { delaysOf } = setup();
    const { pod: _, ...unknown } = contextOf('a');
    assert.equal((await delaysOf(unknown, 5)).length, 2);
    assert.deepEqual(await delaysOf({ ...unknown, address: '127.0.0.2' }, 3), []);
    const egress = { kind: 'egress', namespace: 'temper-system', podName: 'e', podUid: 'e' } as const;
    assert.deepEqual(await delaysOf({ ...unknown, egress }, 100), []);
  });

  it('a client that disconnects ends its delay', async () => {
    const { delaysOf } = setup();
    assert.deepEqual(await delaysOf(contextOf('a', { disconnected: AbortSignal.abort(new Error('left')) }), 4), [100]);
  });
});
