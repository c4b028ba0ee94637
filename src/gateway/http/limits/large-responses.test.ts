import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../lib/fake-clock.testing.ts';
import { isTemperError } from '../../../lib/errors.ts';
import type { RequestContext } from '../request-context.ts';
import { LargeResponses, type LargeResponseOptions } from './large-responses.ts';

const isLimited = (error: unknown) => isTemperError(error, 'TEMPER_RATE_LIMITED');
const isOverloaded = (error: unknown) => isTemperError(error, 'TEMPER_OVERLOADED');

function setup(options: LargeResponseOptions = {}) {
  const clock = new FakeClock();
  const responses = new LargeResponses(clock, { largeBytes: 100, timeoutMs: 1_000, ...options });
  /** A request of the agent, whose client disconnects when the test says so. */
  const request = (agentUid: string, namespace = 'team-a') => {
    const listeners: (() => void)[] = [];
    const state = { destroyed: false };
    const close = () => listeners.splice(0).forEach((listener) => listener());
    const raw = {
      once: (_event: string, listener: () => void) => listeners.push(listener),
      destroy: () => {
        state.destroyed = true;
        close();
      },
    };
    const pod = { kind: 'pod', namespace, podName: 'p', podUid: 'p', agent: agentUid, agentUid } as const;
    const context: RequestContext = {
      address: '127.0.0.1',
      pod,
      disconnected: new AbortController().signal,
      logFields: {},
    };
    responses.acquire(context, { raw } as unknown as Parameters<LargeResponses['acquire']>[1]);
    return { hold: (bytes: number) => context.holdResponse?.(bytes), state, close };
  };
  return { clock, request };
}

describe('LargeResponses', () => {
  it('a caller holds one large response at a time, and small ones without a limit', () => {
    const { request } = setup({ requestsPerCaller: 10 });
    const first = request('a');
    first.hold(100);
    assert.throws(() => request('a').hold(100), isLimited);
    request('a').hold(99);
    first.close();
    request('a').hold(100);
  });

  it('a caller makes two requests with large responses at a time, and other callers are not affected', () => {
    const { request } = setup();
    const first = request('a');
    request('a');
    assert.throws(() => request('a'), isLimited);
    request('b');
    first.close();
    request('a');
  });

  it('the agents of one namespace never hold all large responses of the process', () => {
    const { request } = setup({ processBytes: 400, namespaceBytes: 200 });
    for (const agent of ['a', 'b']) request(agent).hold(100);
    assert.throws(() => request('c').hold(100), isLimited);
    request('c').hold(99);
    for (const agent of ['d', 'e']) request(agent, 'team-b').hold(100);
    assert.throws(() => request('f', 'team-c').hold(100), isOverloaded);
  });

  it('a response that is larger than the limit is held when no other one is', () => {
    const { request } = setup({ processBytes: 400, namespaceBytes: 200 });
    const largest = request('a');
    largest.hold(500);
    assert.throws(() => request('b').hold(100), isLimited);
    assert.throws(() => request('c', 'team-b').hold(100), isOverloaded);
    largest.close();
    request('b').hold(200);
    request('c', 'team-b').hold(200);
    assert.throws(() => request('d', 'team-c').hold(100), isOverloaded);
  });

  it('a client that does not read its large response is disconnected, and its place is free', async () => {
    const { clock, request } = setup({ processBytes: 100 });
    const slow = request('a');
    slow.hold(100);
    await clock.advance(999);
    assert.equal(slow.state.destroyed, false);
    assert.throws(() => request('b').hold(100), isOverloaded);
    await clock.advance(1);
    assert.equal(slow.state.destroyed, true);
    request('b').hold(100);
  });
});
