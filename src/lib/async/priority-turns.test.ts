import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PriorityTurns } from './priority-turns.ts';

/** Which ranks get the first turns while work of all of them waits. */
function turnsOf(waiting: readonly number[], count: number): number[] {
  const turns = new PriorityTurns();
  return Array.from({ length: count }, () => {
    const [rank = -1] = turns.order(waiting);
    turns.taken(rank, waiting);
    return rank;
  });
}

describe('the turns of priorities', () => {
  it('the highest rank comes first, and every rank is tried once', () => {
    assert.deepEqual(new PriorityTurns().order([1, 3, 0, 3]), [3, 1, 0]);
    assert.deepEqual(new PriorityTurns().order([]), []);
  });

  it('a lower rank gets every ninth turn while a higher one never stops waiting', () => {
    assert.deepEqual(turnsOf([3, 0], 18), [...Array<number>(8).fill(3), 0, ...Array<number>(8).fill(3), 0]);
  });

  it('with four ranks none waits for more than twelve turns, and the highest has the most', () => {
    const turns = turnsOf([3, 2, 1, 0], 120);
    for (const rank of [0, 1, 2]) {
      const places = turns.flatMap((turn, index) => (turn === rank ? [index] : []));
      const gaps = places.map((place, index) => place - (places[index - 1] ?? -1));
      assert.ok(Math.max(...gaps) <= 12, `rank ${rank} waits ${Math.max(...gaps)} turns`);
      assert.ok(places.length >= 10, `rank ${rank} has ${places.length} turns`);
    }
    assert.ok(turns.filter((turn) => turn === 3).length > 60);
  });

  it('what was passed over before its work ended does not count for later work', () => {
    const turns = new PriorityTurns();
    for (let turn = 0; turn < 8; turn += 1) turns.taken(3, [3, 0]);
    turns.taken(3, [3]);
    assert.deepEqual(turns.order([3, 0]), [3, 0]);
  });
});
