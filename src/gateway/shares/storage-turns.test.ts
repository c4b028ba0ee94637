import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { isTemperError } from '../../lib/errors.ts';
import { StorageTurns } from './storage-turns.ts';

describe('StorageTurns', () => {
  /** Requests by their names, in the order in which they get their places. */
  function setup() {
    const turns = new StorageTurns(2);
    const order: string[] = [];
    const places: Disposable[] = [];
    const request = async (name: string, caller: string, namespace = 'team-a', signal = NEVER_ABORTED) => {
      const place = await turns.take({ agentUid: caller, namespace }, signal);
      order.push(name);
      places.push(place);
    };
    /** Ends the oldest write. */
    const end = async () => {
      places.shift()?.[Symbol.dispose]();
      await setImmediate();
    };
    return { order, request, end };
  }

  it('a write of a namespace beyond its places waits, and one of another namespace does not', async () => {
    const { order, request, end } = setup();
    await Promise.all([request('a1', 'a'), request('a2', 'a')]);
    void request('a3', 'a');
    await request('b1', 'b', 'team-b');
    assert.deepEqual(order, ['a1', 'a2', 'b1']);
    await end();
    assert.deepEqual(order, ['a1', 'a2', 'b1', 'a3']);
  });

  it('callers of one namespace take turns, however many writes one of them has', async () => {
    const { order, request, end } = setup();
    await Promise.all([request('a1', 'a'), request('a2', 'a')]);
    for (const name of ['a3', 'a4', 'a5']) void request(name, 'a');
    void request('c1', 'c');
    for (let ended = 0; ended < 4; ended += 1) await end();
    assert.deepEqual(order, ['a1', 'a2', 'a3', 'c1', 'a4', 'a5']);
  });

  it('a client that leaves gives up its turn, and takes no place', async () => {
    const { order, request, end } = setup();
    await Promise.all([request('a1', 'a'), request('a2', 'a')]);
    const leaving = new AbortController();
    const left = request('left', 'a', 'team-a', leaving.signal);
    void request('a3', 'a');
    leaving.abort();
    await assert.rejects(left, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
    await end();
    await end();
    await end();
    assert.deepEqual(order, ['a1', 'a2', 'a3']);
    await Promise.all([request('a4', 'a'), request('a5', 'a')]);
    assert.deepEqual(order.slice(3), ['a4', 'a5']);
  });
});
