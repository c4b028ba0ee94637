import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { occurrencesOf, parseTiming, type ScheduleDefinition } from './definition.ts';

const definition = (members: Partial<ScheduleDefinition>): ScheduleDefinition => ({
  key: 'team-a/reporter',
  timing: { kind: 'Cron', expression: '0 9 * * *' },
  timeZone: 'UTC',
  jitterMs: 0,
  startingDeadlineMs: 3_600_000,
  suspended: false,
  generation: 1,
  ...members,
});

/** The next due times after this one, in ISO 8601. */
function dueAfter(time: string, count: number, members: Partial<ScheduleDefinition>): string[] {
  const times = occurrencesOf(definition(members));
  const found: string[] = [];
  let next = times.next(Date.parse(time));
  while (next !== undefined && found.length < count) {
    found.push(new Date(next).toISOString().replace(':00.000Z', 'Z'));
    next = times.next(next);
  }
  return found;
}

const newYork = (expression: string): Partial<ScheduleDefinition> => ({
  timing: { kind: 'Cron', expression },
  timeZone: 'America/New_York',
});

describe('parseTiming()', () => {
  it('"every 5m" is an interval', () => {
    assert.deepEqual(parseTiming('every 5m', 'UTC'), { kind: 'Interval', every: 300_000 });
    assert.deepEqual(parseTiming(' every 24h ', 'UTC'), { kind: 'Interval', every: 86_400_000 });
  });

  for (const [text, rule] of [
    ['every 59s', /60s to 24h/],
    ['every 2d', /60s to 24h/],
    ['0 9 * *', /five fields/],
    ['* * * * * * *', /five fields/],
    ['@daily', /five fields/],
    ['2026-01-01T00:00:00', /five fields/],
    ['*/10 * * * * *', /at least 60 seconds apart/],
    ['99 * * * *', /minute/],
    ['0 0 31 2 *', /no date matches/],
    ['0 9 * * $(id)', /five fields/],
    ['0 9 * * '.padEnd(200, '1'), /five fields/],
  ] as const) {
    it(`"${text.slice(0, 40)}" is refused with its rule`, () => {
      assert.throws(
        () => parseTiming(text, 'UTC'),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && rule.test(error.message),
      );
    });
  }

  it('an unknown time zone is refused by name', () => {
    assert.throws(() => parseTiming('0 9 * * *', 'Mars/Phobos'), /"Mars\/Phobos" is not a time zone/);
  });
});

describe('occurrencesOf()', () => {
  it('a time that the clocks leave out is due right after the change', () => {
    const expected = ['2026-03-07T07:30Z', '2026-03-08T07:00Z', '2026-03-09T06:30Z'];
    assert.deepEqual(dueAfter('2026-03-07T00:00:00Z', 3, newYork('30 2 * * *')), expected);
  });

  it('a time that the clocks repeat is due once', () => {
    const expected = ['2026-10-31T05:30Z', '2026-11-01T05:30Z', '2026-11-02T06:30Z'];
    assert.deepEqual(dueAfter('2026-10-31T00:00:00Z', 3, newYork('30 1 * * *')), expected);
  });

  it('an hourly schedule is due in each hour of the repeated one', () => {
    const expected = ['2026-11-01T05:00Z', '2026-11-01T06:00Z', '2026-11-01T07:00Z'];
    assert.deepEqual(dueAfter('2026-11-01T04:30:00Z', 3, newYork('0 * * * *')), expected);
  });

  it('six fields begin with the second of the minute', () => {
    const timing = { kind: 'Cron', expression: '15 0 9 * * *' } as const;
    assert.deepEqual(dueAfter('2026-01-01T00:00:00Z', 1, { timing }), ['2026-01-01T09:00:15.000Z']);
  });

  it('schedules with one interval are due at different times, and each always at the same', () => {
    const timing = { kind: 'Interval', every: 3_600_000 } as const;
    const phases = ['a', 'b', 'c', 'd'].map((key) => dueAfter('2026-01-01T00:00:00Z', 1, { timing, key })[0]);
    assert.equal(new Set(phases).size, 4);
    assert.deepEqual(dueAfter('2026-01-01T00:00:00Z', 1, { timing, key: 'a' }), [phases[0]]);
  });

  it('jitter moves a cron schedule by a fixed time below its limit', () => {
    const time = (key: string) => Date.parse(dueAfter('2026-01-01T10:00:00Z', 1, { jitterMs: 600_000, key })[0] ?? '');
    const offsets = ['a', 'b', 'c', 'd', 'e'].map((key) => time(key) - Date.parse('2026-01-02T09:00:00Z'));
    assert.ok(offsets.every((offset) => offset >= 0 && offset < 600_000));
    assert.ok(new Set(offsets).size > 1);
  });

  it('quiet hours over midnight leave out what is due within them, in the time zone', () => {
    const quiet = { quietHours: { from: '22:00', to: '06:00' }, timeZone: 'Europe/Berlin' };
    const every = { kind: 'Cron', expression: '0 */4 * * *' } as const;
    const expected = ['2026-06-01T06:00Z', '2026-06-01T10:00Z', '2026-06-01T14:00Z', '2026-06-01T18:00Z'];
    assert.deepEqual(dueAfter('2026-05-31T20:30:00Z', 4, { ...quiet, timing: every }), expected);
    const times = occurrencesOf(definition({ ...quiet, timing: every }));
    assert.equal(times.latest(Date.parse('2026-06-02T03:00:00Z')), Date.parse('2026-06-01T18:00:00Z'));
  });

  it('a schedule within its quiet hours is never due', () => {
    const quietHours = { from: '08:00', to: '10:00' };
    assert.deepEqual(dueAfter('2026-01-01T00:00:00Z', 1, { quietHours }), []);
  });
});
