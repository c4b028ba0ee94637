import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../../test/support/clocks.ts';
import type { AuditRecord } from '../../audit/port.ts';
import type { Envelope } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import { createDecider } from '../../policy/decider.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { inboxOf } from '../messages/message-entries.ts';
import { MessageLog } from '../messages/message-log.ts';
import type { Member } from '../team/member.ts';
import { LocalSchedules } from './local-schedules.ts';
import { madeSchedules } from './made-schedules.ts';

const KEY = 'team-a/reporter';
const REPORT = { name: 'report', times: '0 9 * * *', message: 'report for {{time}}' };

interface Setup {
  records?: RecordStore;
  clock?: FakeClock;
  granted?: number;
  policy?: object;
  isTainted?: boolean;
  /** Of the message in work. */
  depth?: number;
}

/** A process over the records; another one over the same records is the next process. */
async function aProcess(setup: Setup = {}) {
  const { records = memoryRecordStore(), clock = new FakeClock('2026-03-02T10:00:00Z') } = setup;
  const scope = { name: 'reporter', namespace: 'team-a' };
  const spec = {
    trustPolicyRef: { name: 'p' },
    model: { primary: 'default/default' },
    grants: { schedules: setup.granted ?? 2 },
  };
  const policy = { metadata: { name: 'p' }, spec: setup.policy ?? {} };
  const member = { ...scope, agent: { metadata: scope, spec }, policy } as unknown as Member;
  const inboxes = new LocalInboxes({ log: await MessageLog.open(records, clock.now().getTime()), clock });
  const running = new LocalSchedules({
    inboxes,
    clock,
    workspace: '/work',
    events: () => undefined,
    members: () => [member],
    isSuspended: () => false,
  });
  const audited: AuditRecord[] = [];
  const decider = (tainted: boolean) =>
    createDecider({
      agent: { ...scope, spec: member.agent.spec },
      policy: { name: 'p', spec: member.policy.spec },
      level: 'standard',
      tainted,
      workspace: '/work',
    });
  const deps = {
    inboxes,
    clock,
    audit: { append: async (record: AuditRecord) => void audited.push(record) },
    decider,
    current: () => ({ root: 'root-1', session: 's-1', depth: setup.depth ?? 0 }) as Envelope,
    clean: (input: Json) => input,
    onChange: () => running.wake(),
  };
  const schedules = madeSchedules(scope, deps, { session: 's-1', isTainted: setup.isTainted ?? false });
  const op = (key: string) => ({ signal: new AbortController().signal, deadline: Number.POSITIVE_INFINITY, key });
  const messages = () => [...inboxOf(inboxes.inboxes, KEY).messages.values()].map(({ message }) => message);
  const names = async () =>
    ((await schedules.list(op('list'))) as unknown as { schedules: { name: string; stopped?: string }[] }).schedules;
  return { records, clock, inboxes, running, audited, schedules, op, messages, names };
}

const failsWith = (code: ErrorCode) => (error: unknown) => isTemperError(error, code);

const isDeniedBy = (rule: string) => (error: unknown) => {
  assert.ok(isTemperError(error, 'TEMPER_POLICY_DENIED'));
  assert.equal(error.details['rule'], rule);
  return true;
};

describe('the schedules that agents of one process make', () => {
  it('a schedule is made once per call, is in the chain, and starts its runs in the next process too', async () => {
    const first = await aProcess();
    const made = await first.schedules.create(REPORT, first.op('call-1'));
    assert.deepEqual(made, { name: 'report', nextRun: '2026-03-03T09:00:00.000Z' });
    assert.deepEqual(await first.schedules.create(REPORT, first.op('call-1')), made);
    assert.deepEqual(
      first.audited.map(({ action, subject }) => [action, subject]),
      [['schedule.created', 'report']],
    );
    assert.ok(!JSON.stringify(first.audited).includes('report for'), 'the text of the agent is not in the chain');
    await first.running.round();
    first.clock.skipTo('2026-03-03T09:00:00Z');
    const second = await aProcess(first);
    await second.running.round();
    const [message] = second.messages();
    assert.equal(message?.session, 'schedule-report-20260303T090000Z');
    assert.equal(message?.text, 'report for 2026-03-03T09:00:00Z');
  });

  it('a schedule with one time ends after its run, and continues the conversation only where the agent asks for it', async () => {
    const { schedules, op, clock, running, messages, inboxes, names } = await aProcess();
    const once = { ...REPORT, times: '2026-03-02T10:05:00Z', continueSession: true };
    await schedules.create(once, op('call-1'));
    clock.skipTo('2026-03-02T10:05:00Z');
    await running.round();
    assert.equal(messages()[0]?.session, 's-1');
    const delivery = await inboxes.receiver(KEY).next(op('work'));
    await delivery.endWith('completed', () => []);
    await running.round();
    assert.deepEqual(await names(), []);
    assert.equal(inboxOf(inboxes.inboxes, KEY).schedules.states.size, 0);
  });

  it('the grant, the rate of the policy, a chain of another agent and untrusted content limit what is made', async () => {
    const two = await aProcess({ granted: 1 });
    await two.schedules.create(REPORT, two.op('call-1'));
    await assert.rejects(
      two.schedules.create({ ...REPORT, name: 'other' }, two.op('call-2')),
      isDeniedBy('grant.schedules'),
    );
    const fast = { ...REPORT, times: 'every 1m' };
    const setups: [Setup, Json, string][] = [
      [{ policy: { schedules: { runsPerHour: 59 } } }, fast, 'policy.schedules.rate'],
      [{ depth: 1 }, REPORT, 'schedules.chain'],
      [{ isTainted: true }, REPORT, 'tainted.schedule'],
    ];
    for (const [setup, input, rule] of setups) {
      const { schedules, op, names, audited } = await aProcess(setup);
      await assert.rejects(schedules.create(input, op('call-1')), isDeniedBy(rule));
      assert.deepEqual(await names(), []);
      assert.deepEqual(audited, []);
    }
  });

  it('a schedule of a tainted session, where the policy permits it, taints the sessions of its runs', async () => {
    const setup = { isTainted: true, policy: { tainted: { deny: ['network'] } } };
    const { schedules, op, clock, running, messages } = await aProcess(setup);
    await schedules.create(REPORT, op('call-1'));
    await running.round();
    clock.skipTo('2026-03-03T09:00:00Z');
    await running.round();
    assert.equal(messages()[0]?.tainted, true);
  });

  it('a name that is taken, wrong arguments and an unknown name are errors, and a deleted schedule starts no run', async () => {
    const { schedules, op, clock, running, messages } = await aProcess();
    await schedules.create(REPORT, op('call-1'));
    await assert.rejects(schedules.create(REPORT, op('call-2')), failsWith('TEMPER_TOOL_INPUT_INVALID'));
    await assert.rejects(
      schedules.create({ ...REPORT, name: 'b', times: 'soon' }, op('call-3')),
      failsWith('TEMPER_TOOL_INPUT_INVALID'),
    );
    await assert.rejects(schedules.delete('none', op('call-4')), failsWith('TEMPER_NOT_FOUND'));
    await running.round();
    await schedules.delete('report', op('call-5'));
    clock.skipTo('2026-03-03T09:00:00Z');
    await running.round();
    assert.deepEqual(messages(), []);
  });

  it('a grant that became smaller stops the newest schedules, and the list says why', async () => {
    const first = await aProcess();
    await first.schedules.create(REPORT, first.op('call-1'));
    await first.schedules.create({ ...REPORT, name: 'second' }, first.op('call-2'));
    await first.running.round();
    const { running, clock, messages, names } = await aProcess({ ...first, granted: 1 });
    clock.skipTo('2026-03-03T09:00:00Z');
    await running.round();
    assert.deepEqual(
      messages().map(({ session }) => session),
      ['schedule-report-20260303T090000Z'],
    );
    assert.deepEqual(
      (await names()).map(({ name, stopped }) => [name, stopped]),
      [
        ['report', undefined],
        ['second', 'the policy or the grants allow fewer schedules or runs'],
      ],
    );
  });
});
