import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fire, type FireLimits, NO_FIRES, parseFires, refused, type TriggerFires } from './fires.ts';

const HOUR = 3_600_000;
const START = 500_000 * HOUR;
const LIMITS: FireLimits = { maxFiresPerHour: 60, cooldownMs: 0 };

/** What became of events at these times, each another one. */
function outcomes(limits: FireLimits, times: readonly number[]): string[] {
  let fires: TriggerFires = NO_FIRES;
  return times.map((time, index) => {
    const decision = fire(fires, limits, `evt-${index}`, time);
    if ('refused' in decision) return decision.refused;
    fires = decision.fires ?? fires;
    return String(fires.fires);
  });
}

describe('the fires of a trigger', () => {
  it('a trigger fires at most as often as its limit', () => {
    assert.deepEqual(outcomes({ ...LIMITS, maxFires: 2 }, [START, START + 1, START + 2]), ['1', '2', 'MaxFires']);
  });

  it('events in the cooldown pass, also when the clock went back', () => {
    const limits = { ...LIMITS, cooldownMs: 1_000 };
    assert.deepEqual(outcomes(limits, [START, START + 999, START + 1_000]), ['1', 'Cooldown', '2']);
    assert.deepEqual(outcomes(limits, [START + 5_000, START]), ['1', '2']);
  });

  it('the limit of an hour begins again with the next hour, not with one that a clock repeats', () => {
    const limits = { ...LIMITS, maxFiresPerHour: 2 };
    const times = [START, START + 1, START + 2, START + HOUR, START + HOUR, START - HOUR, START + HOUR];
    assert.deepEqual(outcomes(limits, times), ['1', '2', 'HourlyLimit', '3', '4', 'HourlyLimit', 'HourlyLimit']);
  });

  it('a repeated event is the same fire, also when the limit is reached', () => {
    const limits = { ...LIMITS, maxFires: 1 };
    const first = fire(NO_FIRES, limits, 'evt-a', START);
    assert.ok('fires' in first && first.fires !== undefined);
    assert.deepEqual(fire(first.fires, limits, 'evt-a', START + 1), { fires: undefined });
  });

  it('refusals are counted with the last reason, and a fire keeps them', () => {
    const twice = refused(refused(NO_FIRES, 'Cooldown', START), 'Full', START + 1);
    assert.deepEqual([twice.refused, twice.lastRefusal], [2, { reason: 'Full', time: START + 1 }]);
    const decision = fire(twice, LIMITS, 'evt-a', START + 2);
    assert.ok('fires' in decision && decision.fires !== undefined);
    assert.deepEqual([decision.fires.fires, decision.fires.refused], [1, 2]);
    assert.deepEqual(parseFires(JSON.parse(JSON.stringify(decision.fires))), decision.fires);
    assert.equal(
      parseFires({ ...NO_FIRES, refused: 1, lastRefusal: { reason: 1, time: 2 } } as never).refused,
      undefined,
    );
  });

  it('a stored state is read back, and any other value is none', () => {
    const decision = fire(NO_FIRES, LIMITS, 'evt-a', START);
    assert.ok('fires' in decision && decision.fires !== undefined);
    assert.deepEqual(parseFires(JSON.parse(JSON.stringify(decision.fires))), decision.fires);
    for (const value of [undefined, null, {}, [], { ...decision.fires, recent: [1] } as never])
      assert.deepEqual(parseFires(value), NO_FIRES);
  });
});
