import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import type { AgentSchedule } from '../../api/v1alpha1/schedule/spec.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { MAX_FAILURES, type ScheduledRunOutcome } from '../../schedule/advance.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { inboxOf } from '../messages/message-entries.ts';
import { MessageLog } from '../messages/message-log.ts';
import type { Member } from '../team/member.ts';
import { LocalSchedules } from './local-schedules.ts';
import { SPEC_SCHEDULE } from './schedule-entries.ts';

const KEY = 'team-a/reporter';
const DAILY: AgentSchedule = { mode: 'Periodic', cron: '0 9 * * *', message: 'report for {{time}}' };

function aMember(schedule?: AgentSchedule, spec: object = {}): Member {
  const metadata = { name: 'reporter', namespace: 'team-a' };
  const agent = { metadata, spec: { ...(schedule === undefined ? {} : { schedule }), ...spec } };
  const policy = { metadata: { name: 'p' }, spec: {} };
  return { ...metadata, agent, policy } as unknown as Member;
}

interface Setup {
  records?: RecordStore;
  clock?: FakeClock;
  member?: Member;
  isSuspended?: () => boolean;
}

/** A process over the records; another one over the same records is the next process. */
async function aProcess(setup: Setup = {}) {
  const { records = memoryRecordStore(), clock = new FakeClock('2026-03-02T10:00:00Z') } = setup;
  const member = setup.member ?? aMember(DAILY);
  const log = await MessageLog.open(records, clock.now().getTime());
  const inboxes = new LocalInboxes({ log, clock });
  const events: AgentEvent[] = [];
  const schedules = new LocalSchedules({
    inboxes,
    clock,
    workspace: '/work',
    events: (event) => events.push(event),
    members: () => [member],
    isSuspended: setup.isSuspended ?? (() => false),
  });
  const stateOf = () => inboxOf(inboxes.inboxes, KEY).schedules.states.get(SPEC_SCHEDULE);
  const messages = () => [...inboxOf(inboxes.inboxes, KEY).messages.values()].map(({ message }) => message);
  /** Works on the message of a run. */
  const work = async (outcome: ScheduledRunOutcome): Promise<void> => {
    const op = { signal: new AbortController().signal, deadline: Number.POSITIVE_INFINITY, key: 'work' };
    assert.ok(inboxes.hasWork(KEY), 'no message to work on');
    const delivery = await inboxes.receiver(KEY).next(op);
    await delivery.endWith(outcome, () => []);
  };
  /** The rounds of a process at each due time until this time. */
  const runUntil = async (time: string): Promise<void> => {
    const until = Date.parse(time);
    await schedules.round();
    while (clock.now().getTime() < until) {
      clock.skipTo(new Date(Math.min(stateOf()?.next ?? until, until)).toISOString());
      await schedules.round();
    }
  };
  return { records, clock, inboxes, schedules, events, stateOf, messages, work, runUntil };
}

describe('the schedules of agents in one process', () => {
  it('a due run is a message of its schedule in a session of its own', async () => {
    const { runUntil, messages, stateOf } = await aProcess();
    await runUntil('2026-03-03T08:59:59Z');
    assert.deepEqual(messages(), []);
    await runUntil('2026-03-03T09:00:00Z');
    const [message] = messages();
    assert.equal(message?.source, 'Schedule');
    assert.equal(message?.from, 'schedule');
    assert.equal(message?.text, 'report for 2026-03-03T09:00:00Z');
    assert.equal(message?.session, 'schedule-20260303T090000Z');
    assert.equal(message?.depth, 0);
    assert.equal(message?.root, message?.id);
    assert.equal(stateOf()?.active?.message, message?.id);
  });

  it('a run that has not ended skips the next due time, and its end frees the schedule', async () => {
    const member = aMember({ mode: 'Periodic', cron: '*/30 * * * *', message: 'look' });
    const { runUntil, messages, stateOf, work } = await aProcess({ member });
    await runUntil('2026-03-02T11:00:00Z');
    assert.equal(messages().length, 1);
    assert.equal(stateOf()?.skipped, 1);
    await work('completed');
    assert.equal(stateOf()?.active, undefined);
    assert.equal(stateOf()?.lastSuccess, Date.parse('2026-03-02T11:00:00Z'));
    await runUntil('2026-03-02T11:30:00Z');
    assert.equal(messages().length, 1);
  });

  it('a persistent agent works on a run after the other, and the end of one wakes the process', async () => {
    const member = aMember({ mode: 'Continuous', persistent: true, message: 'go on' });
    const { schedules, clock, messages, inboxes, work, stateOf } = await aProcess({ member });
    const stop = new AbortController();
    const running = schedules.run(stop.signal);
    const dueTimes = new Set<number>();
    for (let run = 0; run < 3; run += 1) {
      // Without the end of the run the process would look again after a minute.
      for (let step = 0; step < 4 && !inboxes.hasWork(KEY); step += 1) await clock.advance(500);
      assert.equal(messages().length, 1);
      dueTimes.add(stateOf()?.active?.due ?? 0);
      await work('completed');
    }
    assert.equal(dueTimes.size, 3, 'each run has a due time of its own');
    stop.abort();
    await running;
  });

  it('a process that ends with an active run leaves its message once, and the next process starts no second run', async () => {
    const first = await aProcess();
    await first.runUntil('2026-03-03T09:00:00Z');
    const second = await aProcess(first);
    await second.runUntil('2026-03-03T09:10:00Z');
    assert.deepEqual(
      second.messages().map(({ id }) => id),
      first.messages().map(({ id }) => id),
    );
    assert.equal(second.stateOf()?.active?.message, first.messages()[0]?.id);
    await second.work('completed');
    const third = await aProcess(first);
    assert.equal(third.stateOf()?.active, undefined);
    assert.equal(third.stateOf()?.lastSuccess, Date.parse('2026-03-03T09:10:00Z'));
  });

  it('after days without a process only the last due time within its deadline runs', async () => {
    const first = await aProcess();
    await first.schedules.round();
    first.clock.skipTo('2026-03-06T09:30:00Z');
    const second = await aProcess(first);
    await second.schedules.round();
    assert.deepEqual(
      second.messages().map(({ text }) => text),
      ['report for 2026-03-06T09:00:00Z'],
    );
    assert.equal(second.stateOf()?.missed, 3);
  });

  it('five failures stop the schedule with one warning, and a change of the spec starts it again', async () => {
    const { records, clock, runUntil, work, messages, events } = await aProcess();
    for (let day = 3; day < 3 + MAX_FAILURES; day += 1) {
      await runUntil(`2026-03-0${day}T09:00:00Z`);
      await work('failed');
    }
    await runUntil('2026-03-09T12:00:00Z');
    assert.deepEqual(messages(), []);
    assert.deepEqual(
      events.map((event) => event.type === 'warning' && event.code),
      ['TEMPER_SCHEDULE_STOPPED'],
    );
    const member = aMember(DAILY, { description: 'corrected' });
    const next = await aProcess({ records, clock, member });
    await next.runUntil('2026-03-10T09:00:00Z');
    assert.equal(next.messages().length, 1);
  });

  it('a failure of the provider does not count', async () => {
    const { runUntil, work, stateOf } = await aProcess();
    await runUntil('2026-03-03T09:00:00Z');
    await work('excused');
    assert.equal(stateOf()?.failures, 0);
    assert.equal(stateOf()?.active, undefined);
  });

  it('nothing is caught up after a suspension, and the jitter, the quiet hours and the grid of the pure plan are in force', async () => {
    let isSuspended = true;
    const { runUntil, messages, stateOf } = await aProcess({ isSuspended: () => isSuspended });
    await runUntil('2026-03-03T09:30:00Z');
    isSuspended = false;
    await runUntil('2026-03-03T10:00:00Z');
    assert.deepEqual(messages(), []);
    assert.equal(stateOf()?.missed, 0);
    const quiet = await aProcess({
      member: aMember({
        mode: 'Continuous',
        interval: '1h',
        quietHours: { from: '00:00', to: '12:00' },
        message: 'look',
      }),
    });
    await quiet.runUntil('2026-03-02T11:59:59Z');
    assert.deepEqual(quiet.messages(), []);
    await quiet.runUntil('2026-03-02T13:00:00Z');
    assert.equal(quiet.messages().length, 1);
  });

  it('a schedule that was removed from the spec does not catch up when it comes back', async () => {
    const first = await aProcess();
    await first.schedules.round();
    const without = await aProcess({ ...first, member: aMember() });
    await without.schedules.round();
    assert.equal(without.stateOf(), undefined);
    first.clock.skipTo('2026-03-03T09:30:00Z');
    const again = await aProcess(first);
    await again.schedules.round();
    assert.deepEqual(again.messages(), []);
  });

  it('a full inbox misses the run with a warning', async () => {
    const { inboxes, runUntil, stateOf, events } = await aProcess();
    const other = { to: 'reporter', from: 'lead', source: 'Agent' as const, depth: 1 };
    const until = { deadline: '2026-03-09T00:00:00Z', time: '2026-03-02T10:00:00Z' };
    const text = 'x'.repeat(4 * 1_024 * 1_024);
    for (const id of ['one', 'two']) await inboxes.publish(KEY, id, { ...other, ...until, session: 's', text });
    await runUntil('2026-03-03T09:00:00Z');
    assert.equal(stateOf()?.missed, 1);
    assert.equal(stateOf()?.active, undefined);
    assert.deepEqual(
      events.map((event) => event.type === 'warning' && event.code),
      ['TEMPER_BUS_FULL'],
    );
  });

  it('the loop ends with its signal while it waits', async () => {
    const { schedules } = await aProcess();
    const stop = new AbortController();
    const running = schedules.run(stop.signal);
    stop.abort();
    await running;
  });
});
