import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PriorityTurns } from '../lib/async/priority-turns.ts';
import { nextJob, runnerFor, runnerToReplace } from './runner-choice.ts';

const runner = (name: string, state: string, owner?: string) => ({ name, state, owner });
const job = (owner: string, number = 1, rank = 0) => ({ owner, number, rank });
const after = (lastOwner: string | undefined) => ({ lastOwner, turns: new PriorityTurns() });

describe('the choice of a runner', () => {
  it('a job gets a runner of its own session before an unused one, and never one of another session', () => {
    const [unused, own, other] = [runner('u', 'idle'), runner('o', 'idle', 'a'), runner('x', 'idle', 'b')];
    assert.equal(runnerFor([unused, other, own], 'a'), own);
    assert.equal(runnerFor([other, unused], 'a'), unused);
    assert.equal(runnerFor([other, runner('r', 'resetting', 'a')], 'a'), undefined);
    assert.equal(runnerFor([own, unused], undefined), unused, 'a wait that runs no job takes an unused one');
    assert.equal(runnerFor([own], undefined), undefined);
  });

  it('a session with many waiting jobs does not delay the job of another session', () => {
    const queue = [job('many', 1), job('many', 2), job('few', 3)];
    const free = new Set([runner('m', 'idle', 'many'), runner('u', 'idle')]);
    assert.equal(nextJob(queue, free, after('many'))?.job.number, 3, 'the last job was one of the busy session');
    assert.equal(nextJob(queue, free, after('few'))?.job.number, 1, 'they take turns');
    const working = new Set([runner('m', 'busy', 'many'), runner('n', 'idle', 'many'), runner('u', 'idle')]);
    assert.equal(nextJob(queue, working, after('many'))?.runner.name, 'u');
    const none = new Set([runner('m', 'busy', 'many'), runner('n', 'idle', 'many')]);
    assert.equal(
      nextJob(queue, none, after('many'))?.job.number,
      1,
      'a runner does not stand idle while the other session has none',
    );
    assert.equal(nextJob([], free, after(undefined)), undefined);
  });

  it('a job of higher rank starts before older ones, and a lower rank gets every ninth turn', () => {
    const queue = [job('low', 1), job('high', 2, 3)];
    const turns = new PriorityTurns();
    const started = Array.from(
      { length: 9 },
      () => nextJob(queue, new Set([runner('u', 'idle')]), { lastOwner: undefined, turns })?.job.owner,
    );
    assert.deepEqual(started, [...Array<string>(8).fill('high'), 'low']);
  });

  it('a job of lower rank takes the runner that no job of higher rank may use', () => {
    const queue = [job('low', 1), job('high', 2, 3)];
    assert.equal(nextJob(queue, new Set([runner('l', 'idle', 'low')]), after(undefined))?.job.owner, 'low');
  });

  it('an idle runner of another session is replaced when no unused one is left', () => {
    const [a, b] = [runner('a', 'idle', 'a'), runner('b', 'busy', 'b')];
    assert.equal(runnerToReplace(new Set([a, b]), 'b'), a);
    assert.equal(runnerToReplace(new Set([a, b]), 'a'), undefined, 'a busy runner stays');
    assert.equal(runnerToReplace(new Set([a, b, runner('u', 'starting')]), 'b'), undefined);
    assert.equal(
      runnerToReplace(new Set([a, runner('c', 'idle', 'a')]), 'a'),
      undefined,
      'one session keeps its runners',
    );
  });
});
