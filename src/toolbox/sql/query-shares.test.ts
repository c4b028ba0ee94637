import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { isTemperError } from '../../lib/errors.ts';
import { QueryShares } from './query-shares.ts';

describe('the shares of a database', () => {
  /** The names of the queries, in the order in which they started. */
  function started(max: number) {
    const shares = new QueryShares(max);
    const names: string[] = [];
    const take = async (agent: string, name: string, signal = NEVER_ABORTED): Promise<Disposable> => {
      const share = await shares.take(agent, signal);
      names.push(name);
      return share;
    };
    return { names, take };
  }
  const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('one agent has half of the queries at the same time, and its next one starts when one has ended', async () => {
    const { names, take } = started(2);
    const first = await take('a', 'a1');
    const second = take('a', 'a2');
    await take('b', 'b1');
    await later();
    assert.deepEqual(names, ['a1', 'b1']);
    first[Symbol.dispose]();
    (await second)[Symbol.dispose]();
    assert.deepEqual(names, ['a1', 'b1', 'a2']);
  });

  it('queries beyond all shares start in their order', async () => {
    const { names, take } = started(2);
    const [one, two] = [await take('a', 'a1'), await take('b', 'b1')];
    const waiting = [take('c', 'c1'), take('d', 'd1')];
    await later();
    assert.deepEqual(names, ['a1', 'b1']);
    two[Symbol.dispose]();
    await waiting[0];
    assert.deepEqual(names, ['a1', 'b1', 'c1']);
    one[Symbol.dispose]();
    await waiting[1];
    assert.deepEqual(names, ['a1', 'b1', 'c1', 'd1']);
  });

  it('a namespace that uses all shares does not keep the queries of another one waiting behind its own', async () => {
    const { names, take } = started(2);
    const first = await take('team-a/one', 'one');
    await take('team-a/two', 'two');
    const waiting = [take('team-a/three', 'three'), take('team-a/four', 'four'), take('team-b/five', 'five')];
    await later();
    first[Symbol.dispose]();
    const other = await waiting[2];
    assert.deepEqual(names, ['one', 'two', 'five']);
    other?.[Symbol.dispose]();
    (await waiting[0])?.[Symbol.dispose]();
    (await waiting[1])?.[Symbol.dispose]();
    assert.deepEqual(names, ['one', 'two', 'five', 'three', 'four']);
  });

  it('a query whose call ends waits no longer, and an agent has at most eight that wait', async () => {
    const { names, take } = started(1);
    const running = await take('a', 'a1');
    const ended = new AbortController();
    const cancelled = take('a', 'a2', ended.signal);
    ended.abort();
    await assert.rejects(cancelled, (error) => isTemperError(error, 'TEMPER_DATABASE_QUERY_FAILED'));
    const waiting = Array.from({ length: 8 }, (_, index) => take('a', `w${index}`));
    await assert.rejects(take('a', 'too many'), (error) => isTemperError(error, 'TEMPER_RATE_LIMITED'));
    running[Symbol.dispose]();
    for (const next of waiting) (await next)[Symbol.dispose]();
    assert.equal(names.length, 9);
  });
});
