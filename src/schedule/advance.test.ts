import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { advance, ended, isFailing, MAX_FAILURES, type ScheduleState } from './advance.ts';
import type { ScheduleDefinition } from './definition.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const daily: ScheduleDefinition = {
  key: 'team-a/reporter',
  timing: { kind: 'Cron', expression: '0 9 * * *' },
  timeZone: 'UTC',
  jitterMs: 0,
  startingDeadlineMs: HOUR,
  suspended: false,
  generation: 1,
};

const at = (time: string): number => Date.parse(`2026-03-${time}Z`);
const messageOf = (due: number): string => `msg-${due}`;
const step = (state: ScheduleState | undefined, now: string, definition = daily) =>
  advance(definition, state, at(now), messageOf);

/** The state of `daily` before 3 March, with these members. */
function stateWith(members: Partial<ScheduleState> = {}): ScheduleState {
  const { state } = step(undefined, '02T10:00:00');
  return { ...state, ...members };
}

describe('advance()', () => {
  it('a new schedule waits for its next due time', () => {
    const { state, run } = step(undefined, '02T10:00:00');
    assert.equal(run, undefined);
    assert.equal(state.next, at('03T09:00:00'));
  });

  it('a due schedule starts its run and stores the next due time with it', () => {
    const { state, run } = step(stateWith(), '03T09:00:00');
    assert.equal(run, at('03T09:00:00'));
    assert.equal(state.next, at('04T09:00:00'));
    assert.deepEqual(state.active, { due: at('03T09:00:00'), message: messageOf(at('03T09:00:00')) });
  });

  it('a schedule that is not due changes nothing', () => {
    const state = stateWith();
    assert.deepEqual(step(state, '03T08:59:59'), { state });
  });

  it('a run starts late within its deadline, and is missed after it', () => {
    assert.equal(step(stateWith(), '03T10:00:00').run, at('03T09:00:00'));
    const { state, run } = step(stateWith(), '03T10:00:01');
    assert.equal(run, undefined);
    assert.equal(state.missed, 1);
    assert.equal(state.next, at('04T09:00:00'));
  });

  it('after three days without a process only the last due time runs, and the others are missed', () => {
    const { state, run } = step(stateWith(), '05T09:30:00');
    assert.equal(run, at('05T09:00:00'));
    assert.equal(state.missed, 2);
  });

  it('a due time is skipped while the previous run has not ended', () => {
    const first = step(stateWith(), '03T09:00:00').state;
    const { state, run } = step(first, '04T09:00:00');
    assert.equal(run, undefined);
    assert.equal(state.skipped, 1);
    assert.deepEqual(state.active, first.active);
  });

  it('a suspended schedule passes its due times without counting them', () => {
    const { state, run } = step(stateWith(), '05T09:30:00', { ...daily, suspended: true });
    assert.equal(run, undefined);
    assert.deepEqual([state.missed, state.skipped, state.next], [0, 0, at('06T09:00:00')]);
  });

  it('a schedule starts no run after five failures in a row, until a user changes it', () => {
    let state = stateWith();
    for (let day = 3; day < 3 + MAX_FAILURES; day += 1) {
      const started = step(state, `0${day}T09:00:00`);
      assert.equal(started.run, at(`0${day}T09:00:00`));
      state = ended(started.state, messageOf(started.run), 'failed', at(`0${day}T09:01:00`));
    }
    assert.ok(isFailing(state));
    assert.equal(step(state, '08T09:00:00').run, undefined);
    assert.equal(step(state, '08T09:00:00', { ...daily, generation: 2 }).run, at('08T09:00:00'));
  });

  it('a change of the timing ends the failures and keeps the active run', () => {
    const active = { due: at('03T09:00:00'), message: 'msg-1' };
    const failing = stateWith({ failures: MAX_FAILURES, active });
    const changed = { ...daily, timeZone: 'Europe/Berlin' };
    const { state, run } = step(failing, '03T10:00:00', changed);
    assert.equal(run, undefined);
    assert.equal(state.failures, 0);
    assert.deepEqual(state.active, active);
    assert.equal(state.next, at('04T08:00:00'));
  });

  it('a schedule with one due time runs once', () => {
    const once: ScheduleDefinition = { ...daily, timing: { kind: 'Once', at: at('03T12:00:00') } };
    const { state: first } = step(undefined, '02T10:00:00', once);
    const { state, run } = step(first, '03T12:00:01', once);
    assert.equal(run, at('03T12:00:00'));
    assert.equal(state.next, undefined);
    assert.equal(step(state, '04T12:00:01', once).run, undefined);
  });

  it('a clock that goes back by minutes starts no run a second time', () => {
    const { state } = step(stateWith(), '03T09:00:00');
    const open = ended(state, state.active?.message ?? '', 'completed', at('03T09:00:30'));
    assert.equal(step(open, '03T08:59:00').run, undefined);
    assert.equal(step(open, '03T09:00:00').run, undefined);
  });

  it('a clock that was a year ahead does not silence the schedule', () => {
    const wrong = stateWith({ next: at('03T09:00:00') + 365 * DAY, last: at('02T09:00:00') + 365 * DAY });
    assert.equal(step(wrong, '03T08:00:00').state.next, at('03T09:00:00'));
  });
});

describe('ended()', () => {
  const active = { due: at('03T09:00:00'), message: 'msg-1' };
  const running = stateWith({ active, failures: 2 });

  it('a completed run ends the failures and sets the time of the last success', () => {
    const state = ended(running, 'msg-1', 'completed', at('03T09:05:00'));
    assert.deepEqual([state.failures, state.lastSuccess, state.active], [0, at('03T09:05:00'), undefined]);
  });

  it('a failed run counts, and a run with a cause outside the agent does not', () => {
    assert.equal(ended(running, 'msg-1', 'failed', 0).failures, 3);
    const excused = ended(running, 'msg-1', 'excused', 0);
    assert.deepEqual([excused.failures, excused.active], [2, undefined]);
  });

  it('the end of another message changes nothing', () => {
    assert.equal(ended(running, 'msg-2', 'failed', 0), running);
  });
});
