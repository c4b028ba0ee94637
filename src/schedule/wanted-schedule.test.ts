import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../lib/json.ts';
import { isTemperError } from '../lib/errors.ts';
import { MAX_BYTES_PER_AGENT, MAX_SCHEDULES_PER_AGENT, plannedRuns } from './agent-schedule.ts';
import { type AgentSchedules, noSchedules, parseAgentSchedules, storedSchedules } from './agent-schedules.ts';
import { bytesOf, requireSchedule, wantedSchedule, withoutSchedule, withSchedule } from './wanted-schedule.ts';

const NOW = Date.parse('2026-03-02T08:00:00Z');
const AGENT = { uid: 'uid-1', name: 'reporter', namespace: 'team-a' };
const call = { id: 'own-1', agentUid: AGENT.uid, session: 's-1', now: NOW };
const input = { name: 'daily', times: '0 9 * * *', message: 'Report.' };
const want = (members: object = {}, id = 'own-1') =>
  wantedSchedule({ ...input, ...members } as unknown as Json, { ...call, id });

describe('wantedSchedule()', () => {
  it('the arguments of a call become a schedule with its next run, and the session of the call only when it is asked for', () => {
    const { schedule, nextRun } = want();
    assert.equal(nextRun, '2026-03-02T09:00:00.000Z');
    assert.deepEqual(schedule, {
      ...input,
      id: 'own-1',
      timeZone: 'UTC',
      runsPerHour: 1,
      createdAt: '2026-03-02T08:00:00.000Z',
    });
    assert.equal(want({ continueSession: true }).schedule.session, 's-1');
  });

  for (const [what, members, rule] of [
    ['a name with capitals', { name: 'Daily' }, /name has to consist/],
    ['a name that ends a subject', { name: 'a.b' }, /name has to consist/],
    ['an interval below a minute', { times: 'every 59s' }, /every 59s/],
    ['an interval above a day', { times: 'every 25h' }, /every 25h/],
    ['a cron expression with seconds in between', { times: '*/10 * * * * *' }, /60 seconds apart/],
    ['a time more than a year ahead', { times: '2027-06-02T08:00:00Z' }, /more than a year ahead/],
    ['a time that has passed', { times: '2026-03-02T07:59:59Z' }, /has passed/],
    ['a time without a zone', { times: '2026-03-02T08:00:00' }, /times/],
    ['a day that no month has', { times: '2026-02-31T08:00:00Z' }, /is not a time/],
    ['an unknown time zone', { timeZone: 'Mars/Olympus' }, /not a time zone/],
    ['a long message', { message: 'x'.repeat(2_049) }, /2048 characters/],
    ['no message', { message: '' }, /message/],
    ['a list as times', { times: ['every 5m'] }, /times has to be/],
  ] as const) {
    it(`${what} is refused with its rule`, () => {
      assert.throws(
        () => want(members),
        (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID') && rule.test(error.message),
      );
    });
  }
});

describe('plannedRuns()', () => {
  for (const [times, perHour] of [
    ['every 60s', 60],
    ['every 90s', 40],
    ['every 24h', 1],
    ['* * * * *', 60],
    ['*/7 * * * *', 9],
    ['0-9 9 * * 1', 10],
    ['55-59,0-4 * * * *', 10],
    ['0 9 * * 1-5', 1],
    ['2026-03-02T09:00:00Z', 1],
  ] as const) {
    it(`"${times}" is at most ${perHour} runs in one hour`, () => {
      assert.equal(plannedRuns({ times, timeZone: 'Europe/Berlin' }, 'key', NOW).runsPerHour, perHour);
    });
  }
});

describe('the schedules of an agent', () => {
  it('a name is taken once, and free again after its schedule was deleted', () => {
    const one = withSchedule(noSchedules(AGENT), want().schedule);
    assert.throws(() => withSchedule(one, want({}, 'own-2').schedule), /a schedule "daily" already/);
    assert.equal(requireSchedule(one, 'daily').id, 'own-1');
    const none = withoutSchedule(one, 'own-1');
    assert.throws(() => requireSchedule(none, 'daily'), /it made none/);
    assert.equal(withoutSchedule(none, 'own-1'), none);
    assert.equal(withSchedule(none, want({}, 'own-2').schedule).own.length, 1);
  });

  it('an agent has at most fifty schedules, and as many bytes of them as one document may have', () => {
    const add = (all: AgentSchedules, message: string): AgentSchedules =>
      withSchedule(all, want({ name: `n-${all.own.length}`, message }, `own-${all.own.length}`).schedule);
    let small = noSchedules(AGENT);
    for (let count = 0; count < MAX_SCHEDULES_PER_AGENT; count += 1) small = add(small, 'x');
    assert.throws(
      () => add(small, 'x'),
      (error) => isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
    let large = noSchedules(AGENT);
    assert.throws(() => {
      for (;;) large = add(large, '€'.repeat(2_048));
    }, /64 KiB/);
    assert.ok(bytesOf(large) <= MAX_BYTES_PER_AGENT && large.own.length > 5);
  });

  it('a stored document is read as it was written, without members that it does not know', () => {
    const pause = { by: 'ada', reason: 'holidays', since: '2026-03-02T08:00:00Z' };
    const { schedule } = want({ continueSession: true });
    const all = { agent: AGENT, own: [{ ...schedule, tainted: true, pause, resumed: 2 }], spec: { pause } };
    assert.deepEqual(parseAgentSchedules(storedSchedules(all)), all);
    const foreign = { ...storedSchedules(all), own: [{ ...schedule, extra: 1 }, { id: 1 }, null] } as unknown as Json;
    assert.deepEqual(parseAgentSchedules(foreign)?.own, [schedule]);
    assert.equal(parseAgentSchedules({ own: [] }), undefined);
  });
});
