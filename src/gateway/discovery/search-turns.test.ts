import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { SearchSteps } from '../../discovery/lexical/steps.ts';
import { SearchTurns, type SearchTurnsOptions } from './search-turns.ts';

/** As long as a turn. */
const STEP_MS = 5;
const AMPLE = { perSecond: 1, burst: 1_000_000 };

describe('the turns of searches', () => {
  const clock = { ms: 0, monotonic: () => clock.ms };
  let done: string[] = [];
  /** A search with so many steps; each ends a turn. */
  function* search(name: string, steps: number): SearchSteps<string> {
    for (let step = 0; step < steps; step += 1) {
      clock.ms += STEP_MS;
      done.push(name);
      if (step < steps - 1) yield;
    }
    return name;
  }
  function open(options: Partial<SearchTurnsOptions> = {}): SearchTurns {
    clock.ms = 0;
    done = [];
    return new SearchTurns({ clock, time: { agent: AMPLE, namespace: AMPLE }, ...options });
  }
  const run = (turns: SearchTurns, agentUid: string, namespace: string, steps = 1, signal = NEVER_ABORTED) =>
    turns.run({ agentUid, namespace }, search(agentUid, steps), signal);

  it('a search of another namespace has every second turn while agents of one namespace flood the gateway', async () => {
    const turns = open();
    const flood = ['a0', 'a1', 'a0', 'a1', 'a2'].map((agent) => run(turns, agent, 'team-a', 50));
    assert.equal(await run(turns, 'b0', 'team-b', 3), 'b0');
    // The first turn was before the others came.
    assert.deepEqual(done.slice(1), ['a0', 'b0', 'a1', 'b0', 'a2', 'b0']);
    await Promise.all(flood);
    assert.equal(done.length, 5 * 50 + 3);
  });

  it('an agent finishes one search before its next one begins', async () => {
    const turns = open();
    const order: string[] = [];
    const of = async (name: string): Promise<void> => {
      await turns.run({ agentUid: 'a0', namespace: 'team-a' }, search(name, 3), NEVER_ABORTED);
      order.push(name);
    };
    await Promise.all([of('first'), of('second')]);
    assert.deepEqual(done, ['first', 'first', 'first', 'second', 'second', 'second']);
    assert.deepEqual(order, ['first', 'second']);
  });

  it('other work of the process goes on between two turns, and a small search needs one turn only', async () => {
    const turns = open();
    const large = run(turns, 'a0', 'team-a', 10);
    for (let turn = 1; turn <= 5; turn += 1) {
      assert.equal(done.length, turn);
      await setImmediate();
    }
    await large;
    const small = open();
    function* quick(): SearchSteps<number> {
      for (let step = 0; step < 1_000; step += 1) yield;
      return 1;
    }
    let isOver = false;
    void small.run({ agentUid: 'a0', namespace: 'team-a' }, quick(), NEVER_ABORTED).then(() => (isOver = true));
    await setImmediate();
    assert.ok(isOver);
  });

  it('an agent that used its share of time is refused with the time to wait, and others are not', async () => {
    const turns = open({ time: { agent: { perSecond: 10, burst: 20 }, namespace: AMPLE } });
    await run(turns, 'a0', 'team-a', 8);
    await assert.rejects(run(turns, 'a0', 'team-a'), {
      code: 'TEMPER_RATE_LIMITED',
      message: /this agent took more time/,
      // It had 20 tokens and got 0.35 while it worked; after 40 it needs one.
      retry: 2_065,
    });
    assert.equal(done.length, 8, 'a refused search does nothing');
    await run(turns, 'a1', 'team-a');
    clock.ms += 2_100;
    await run(turns, 'a0', 'team-a');
  });

  it('the agents of a namespace have a share of time together, and another namespace is not affected', async () => {
    const turns = open({ time: { agent: AMPLE, namespace: { perSecond: 10, burst: 20 } } });
    await run(turns, 'a0', 'team-a', 8);
    await assert.rejects(run(turns, 'a1', 'team-a'), {
      code: 'TEMPER_RATE_LIMITED',
      message: /this namespace took more time/,
    });
    await run(turns, 'b0', 'team-b');
  });

  it('an agent has a limited number of searches in work, and a namespace leaves a place for another one', async () => {
    const turns = open({ places: { agent: 2, namespace: 4, all: 4 } });
    const held = [run(turns, 'a0', 'team-a', 9), run(turns, 'a0', 'team-a', 9)];
    await assert.rejects(run(turns, 'a0', 'team-a'), { code: 'TEMPER_RATE_LIMITED', retry: 1_000 });
    await assert.rejects(run(turns, 'a1', 'team-a'), { code: 'TEMPER_RATE_LIMITED' });
    await run(turns, 'b0', 'team-b');
    await Promise.all(held);
    await run(turns, 'a0', 'team-a');
  });

  it('a search whose caller leaves has no further turn, and one that throws ends alone', async () => {
    const turns = open();
    const caller = new AbortController();
    const left = run(turns, 'a0', 'team-a', 100, caller.signal);
    caller.abort();
    await assert.rejects(left, { code: 'TEMPER_CANCELLED' });
    function* failing(): SearchSteps<never> {
      yield;
      throw new Error('broken');
    }
    await assert.rejects(turns.run({ agentUid: 'a0', namespace: 'team-a' }, failing(), NEVER_ABORTED), /broken/);
    assert.equal(await run(turns, 'a0', 'team-a', 2), 'a0');
    assert.equal(done.length, 3);
  });
});
