import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Digest } from '../../lib/canonical.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { RecentCalls } from './recent-calls.ts';

const QUESTION: Digest = `sha256:${'1'.repeat(64)}`;

describe('the recent calls of a gateway', () => {
  it('a failure is not kept, so a repeated request runs again', async () => {
    const recent = new RecentCalls<number>(new FakeClock());
    const fail = () => Promise.reject(new Error('no'));
    await assert.rejects(recent.once('k', QUESTION, NEVER_ABORTED, fail), /no/);
    assert.equal(recent.has('k'), false);
    assert.equal(await recent.once('k', QUESTION, NEVER_ABORTED, async () => ({ value: 2, size: 1 })), 2);
  });

  it('work is cancelled some seconds after all who waited for it have gone', async () => {
    const clock = new FakeClock();
    const recent = new RecentCalls<number>(clock);
    const cancelled = Promise.withResolvers<void>();
    const work = (signal: AbortSignal) =>
      new Promise<{ value: number; size: number }>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          cancelled.resolve();
          reject(signal.reason as Error);
        });
      });
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [first, second].map(({ signal }) => recent.once('k', QUESTION, signal, work).catch(() => 'gone'));
    first.abort();
    await waiting[0];
    await clock.advance(6_000);
    assert.equal(recent.has('k'), true);
    second.abort();
    await waiting[1];
    await clock.advance(6_000);
    await cancelled.promise;
  });

  it('a client that connects again within the time gets the answer of the work', async () => {
    const clock = new FakeClock();
    const recent = new RecentCalls<number>(clock);
    const answer = Promise.withResolvers<{ value: number; size: number }>();
    const first = new AbortController();
    const gone = recent.once('k', QUESTION, first.signal, () => answer.promise).catch(() => 'gone');
    first.abort();
    await gone;
    const again = recent.once('k', QUESTION, NEVER_ABORTED, () => Promise.reject(new Error('it ran twice')));
    await clock.advance(6_000);
    answer.resolve({ value: 3, size: 1 });
    assert.equal(await again, 3);
  });
});
