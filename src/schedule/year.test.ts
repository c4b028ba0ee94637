import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { advance, ended, type ScheduleState } from './advance.ts';
import { parseTiming, type ScheduleDefinition } from './definition.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SPAN = 5 * MINUTE;
const BEGIN = Date.parse('2026-01-01T00:00:30Z');
const END = Date.parse('2027-01-01T00:00:30Z');

/** No process works in these times. */
const DOWN = [
  ['2026-02-11T04:00:00Z', '2026-02-11T04:20:00Z'],
  // Over the change of the clocks in Berlin.
  ['2026-03-29T00:10:00Z', '2026-03-29T07:40:00Z'],
  ['2026-06-01T00:00:00Z', '2026-06-04T12:00:00Z'],
  ['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'],
].map(([from = '', to = '']) => ({ from: Date.parse(from), to: Date.parse(to) }));

/** The clock of the process is wrong by this much in these times; each ends while no due time is near that it has not passed. */
const WRONG = [
  { from: Date.parse('2026-05-05T10:00:00Z'), to: Date.parse('2026-05-05T10:40:00Z'), by: -25 * MINUTE },
  // It passes a due time in Berlin early, and comes back before it.
  { from: Date.parse('2026-07-07T06:40:00Z'), to: Date.parse('2026-07-07T06:50:00Z'), by: 25 * MINUTE },
  { from: Date.parse('2026-08-01T13:00:00Z'), to: Date.parse('2026-08-01T13:20:00Z'), by: 50 * MINUTE },
  { from: Date.parse('2026-09-09T20:00:00Z'), to: Date.parse('2026-09-09T20:10:00Z'), by: -5 * MINUTE },
];

const SCHEDULES: readonly { cron: string; timeZone: string; due: (local: Local) => boolean }[] = [
  {
    cron: '0 9 * * 1-5',
    timeZone: 'Europe/Berlin',
    due: ({ time, weekday }) => time === '09:00' && isWeekday(weekday),
  },
  { cron: '30 7 1 * *', timeZone: 'America/New_York', due: ({ time, day }) => time === '07:30' && day === 1 },
  { cron: '15 */6 * * *', timeZone: 'Asia/Kolkata', due: ({ time }) => /^(00|06|12|18):15$/.test(time) },
  {
    cron: '45 23 * * 0',
    timeZone: 'Pacific/Auckland',
    due: ({ time, weekday }) => time === '23:45' && weekday === 'Sun',
  },
];

interface Local {
  readonly time: string;
  readonly day: number;
  readonly weekday: string;
}

const isWeekday = (weekday: string): boolean => weekday !== 'Sat' && weekday !== 'Sun';

/** Every minute of the year that the calendar of the time zone makes due, read without the scheduler. */
function dueTimes({ timeZone, due }: (typeof SCHEDULES)[number]): number[] {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hourCycle: 'h23',
    weekday: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
  const times: number[] = [];
  // All due times are at a quarter of an hour.
  for (let time = Math.ceil(BEGIN / (15 * MINUTE)) * 15 * MINUTE; time < END; time += 15 * MINUTE) {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
    const { weekday = '', day = '', hour = '', minute = '' } = parts;
    if (due({ time: `${hour}:${minute}`, day: Number(day), weekday })) times.push(time);
  }
  return times;
}

/** What runs: each due time, and after a time without a process the last one, unless it is an hour ago. */
function expectedRuns(due: readonly number[]): { runs: number[]; missed: number } {
  const down = (time: number) => DOWN.find(({ from, to }) => time >= from && time < to);
  const runs = due.filter((time, index) => {
    const outage = down(time);
    if (outage === undefined) return true;
    const next = due[index + 1];
    return (next === undefined || next >= outage.to) && outage.to - time <= HOUR;
  });
  return { runs, missed: due.length - runs.length };
}

function clockAt(time: number): number {
  const wrong = WRONG.find(({ from, to }) => time >= from && time < to);
  return time + (wrong?.by ?? 0);
}

/** Looks every ten seconds around due times, and every five minutes otherwise, while a process works. */
function simulate(definition: ScheduleDefinition, due: readonly number[]): { runs: number[]; state: ScheduleState } {
  const near = new Set(due.map((time) => Math.floor(time / SPAN)));
  const runs: number[] = [];
  let state: ScheduleState | undefined;
  for (let time = BEGIN; time < END; time += near.has(Math.floor(time / SPAN)) ? 10_000 : SPAN) {
    if (DOWN.some(({ from, to }) => time >= from && time < to)) continue;
    const step = advance(definition, state, clockAt(time), (at) => `msg-${at}`);
    state = step.state;
    if (step.run === undefined) continue;
    runs.push(step.run);
    state = ended(state, `msg-${step.run}`, 'completed', time);
  }
  assert.ok(state !== undefined);
  return { runs, state };
}

describe('a year of schedules', () => {
  for (const schedule of SCHEDULES) {
    const { cron, timeZone } = schedule;
    it(`"${cron}" in ${timeZone} runs exactly at its due times, through outages, changed clocks and a wrong clock`, () => {
      const definition = {
        key: cron,
        timing: parseTiming(cron, timeZone),
        timeZone,
        jitterMs: 0,
        startingDeadlineMs: HOUR,
        suspended: false,
        generation: 1,
      };
      const due = dueTimes(schedule);
      const expected = expectedRuns(due);
      const { runs, state } = simulate(definition, due);
      assert.ok(due.length >= 12);
      assert.deepEqual(
        runs.map((time) => new Date(time).toISOString()),
        expected.runs.map((time) => new Date(time).toISOString()),
      );
      assert.equal(state.missed, expected.missed);
    });
  }
});
