import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { advance, ended, isFailing, type ScheduledRunOutcome, type ScheduleState } from '../advance.ts';
import type { ScheduleDefinition } from '../definition.ts';
import { parseScheduleState, storedForm } from '../stored-state.ts';

const START = Date.parse('2026-03-02T10:00:00Z');
const DEFINITION: ScheduleDefinition = {
  key: 'uid',
  timing: { kind: 'Persistent' },
  timeZone: 'UTC',
  jitterMs: 0,
  startingDeadlineMs: 60_000,
  suspended: false,
  generation: 1,
};
const QUIET: ScheduleDefinition = { ...DEFINITION, quietHours: { from: '22:00', to: '06:00' } };
const messageOf = (due: number): string => `msg-${due}`;

/** A schedule and its clock. */
function aSchedule(definition = DEFINITION, start = START) {
  let state: ScheduleState | undefined;
  const setup = {
    now: start,
    definition,
    get state(): ScheduleState {
      assert.ok(state !== undefined);
      return state;
    },
    step: (): number | undefined => {
      const next = advance(setup.definition, state, setup.now, messageOf);
      state = next.state;
      return next.run;
    },
    end: (outcome: ScheduledRunOutcome): void => {
      state = ended(setup.state, setup.state.active?.message ?? '', outcome, setup.now);
    },
    /** Lets time pass until a run starts. Returns the milliseconds. */
    untilRun: (limitMs: number): number => {
      for (let waited = 0; waited <= limitMs; waited += 500) {
        if (setup.step() !== undefined) return waited;
        setup.now += 500;
      }
      return assert.fail(`no run within ${limitMs} ms`);
    },
  };
  return setup;
}

describe('a persistent schedule', () => {
  it('the first run starts at once, and the next one within a second of its end', () => {
    const schedule = aSchedule();
    assert.equal(schedule.step(), START);
    for (let run = 1; run <= 100; run += 1) {
      schedule.now += 300;
      schedule.end('completed');
      assert.ok(schedule.untilRun(1_500) <= 1_000);
    }
  });

  it('while a run is active nothing is due, missed or skipped, however long it takes', () => {
    const schedule = aSchedule();
    schedule.step();
    const { state } = schedule;
    schedule.now += 3 * 86_400_000;
    assert.equal(schedule.step(), undefined);
    assert.equal(schedule.state, state, 'nothing is written');
    schedule.end('completed');
    assert.equal(schedule.untilRun(1_500) <= 1_000, true);
    assert.deepEqual([schedule.state.missed, schedule.state.skipped], [0, 0]);
  });

  it('after failures it waits for 1, 2, 4, 8, 16 and then always 30 seconds, and a success ends the waits', () => {
    const schedule = aSchedule();
    schedule.step();
    const waits: number[] = [];
    for (let run = 0; run < 8; run += 1) {
      schedule.end('failed');
      waits.push(schedule.untilRun(40_000));
    }
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    assert.equal(isFailing(schedule.state), false, 'it never stops');
    assert.equal(schedule.state.failures, 8);
    schedule.end('completed');
    assert.ok(schedule.untilRun(1_500) <= 1_000);
    assert.equal(schedule.state.failures, 0);
  });

  it('a run whose end has another cause, such as an empty quota, is followed by a wait of 30 seconds', () => {
    const schedule = aSchedule();
    schedule.step();
    schedule.end('excused');
    assert.equal(schedule.untilRun(40_000), 30_000);
    assert.equal(schedule.state.failures, 0);
  });

  it('no run starts within the quiet hours, and the wait for their end is stored once', () => {
    const schedule = aSchedule(QUIET, Date.parse('2026-03-02T21:59:59Z'));
    assert.ok(schedule.step() !== undefined);
    schedule.now += 5_000;
    schedule.end('completed');
    schedule.step();
    const waiting = schedule.state;
    assert.equal(waiting.next, Date.parse('2026-03-03T06:00:00Z'));
    for (let minute = 0; minute < 400; minute += 1) {
      schedule.now += 60_000;
      assert.equal(schedule.step(), undefined);
      assert.equal(schedule.state, waiting);
    }
    schedule.now = Date.parse('2026-03-03T06:00:00Z');
    assert.equal(schedule.step(), schedule.now);
  });

  it('a suspended schedule has no due time, and goes on when it is resumed', () => {
    const schedule = aSchedule();
    schedule.step();
    schedule.definition = { ...DEFINITION, suspended: true };
    schedule.end('completed');
    schedule.now += 2_000;
    assert.equal(schedule.step(), undefined);
    assert.equal(schedule.state.next, undefined);
    schedule.now += 86_400_000;
    schedule.definition = DEFINITION;
    assert.equal(schedule.step(), schedule.now);
  });

  it('no due time repeats when the clock goes back, and one that was hours ahead does not silence the schedule', () => {
    const schedule = aSchedule();
    schedule.step();
    schedule.end('completed');
    schedule.now -= 60_000;
    assert.ok(schedule.untilRun(120_000) >= 60_000);
    assert.ok((schedule.state.last ?? 0) > START);
    schedule.now -= 5 * 3_600_000;
    schedule.end('completed');
    assert.ok(schedule.untilRun(31_000) <= 30_000);
  });

  it('a stored state is read as it was written', () => {
    const schedule = aSchedule();
    schedule.step();
    assert.deepEqual(parseScheduleState(storedForm(schedule.state)), schedule.state);
  });

  it('a schedule that becomes persistent waits for the end of its active run; one that was persistent can stop after failures', () => {
    const schedule = aSchedule({ ...DEFINITION, timing: { kind: 'Interval', every: 60_000 } });
    schedule.untilRun(180_000);
    schedule.definition = DEFINITION;
    assert.equal(schedule.step(), undefined);
    schedule.end('failed');
    assert.equal(schedule.untilRun(2_500), 1_000);
    schedule.definition = { ...DEFINITION, timing: { kind: 'Interval', every: 60_000 } };
    schedule.step();
    assert.equal(schedule.state.persistent, undefined);
  });
});
