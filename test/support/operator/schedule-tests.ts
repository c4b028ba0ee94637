import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { messageCounts } from '../../../src/nats/jetstream/stream-reader.ts';
import { createAgentScheduleStore } from '../../../src/nats/schedules/agent-schedule-store.ts';
import { createScheduleStates } from '../../../src/nats/schedules/schedule-states.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { buildAgent, buildTrustPolicy } from '../builders.ts';
import type { OperatorNatsFixture } from '../nats/operator-nats-fixture.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED } from '../stubs.ts';

const AGENTS = 40;
const UNLIMITED = { reserve: async () => undefined };

/** Tests of schedules, for the suite of an operator that is connected to NATS and serves namespace team-a. */
export function scheduleTests(fixture: () => OperatorNatsFixture): void {
  it('a due schedule puts its message into the inbox, and the end of the run is in its state and in the status', async () => {
    const { apiServer } = fixture();
    const gateway = await fixture().connectGateway();
    await apiServer.apply(buildTrustPolicy('team-a', {}, 'scheduled'));
    const { due, agents } = await applyScheduled(fixture(), ['reporter'], 6);
    const { uid = '' } = agents[0] ?? {};
    const inbox = createNatsInbox(gateway);
    const delivery = await inbox.fetchNext(uid, 30_000, NEVER_ABORTED);
    assert.ok(delivery !== undefined);
    const { message, coordinates } = delivery;
    assert.equal(message.source, 'Schedule');
    assert.deepEqual([message.root, message.depth, message.from], [message.id, 0, 'schedule']);
    assert.equal(message.text, `Report for ${due.toISOString().slice(0, 19)}Z.`);
    const end = { message: message.id, session: message.session, outcome: 'completed', source: 'Schedule' } as const;
    const records = createTaskRecords(gateway, () => UNLIMITED);
    await inbox.ack(coordinates, () => records.end(uid, { ...end, deliveries: 1, endedAt: Date.now() }));
    const state = await pollValue(
      'the end of the run',
      () =>
        createScheduleStates(gateway)
          .read({ agentUid: uid })
          .then((stored) => stored.state),
      (stored) => stored?.lastSuccess !== undefined,
    );
    assert.deepEqual([state?.last, state?.active, state?.failures], [due.getTime(), undefined, 0]);
    assert.deepEqual(await records.read(uid), [], 'a run of a schedule is no task');
  });

  it('a schedule that an agent made runs at its time, once, and is removed after the end of its run', async () => {
    const { apiServer } = fixture();
    const gateway = await fixture().connectGateway();
    const spec = { trustPolicyRef: { name: 'scheduled' }, grants: { tools: ['schedule_*'], schedules: 1 } };
    await apiServer.apply(buildAgent('team-a', 'planner', spec));
    const { metadata } = await apiServer.waitForAgent('team-a', 'planner', 'exists', () => true);
    const { uid } = metadata;
    const agent = { uid, name: 'planner', namespace: 'team-a' };
    const at = new Date(Math.ceil(Date.now() / 1_000 + 3) * 1_000).toISOString();
    const own = { id: 'own-1', name: 'once', times: at, timeZone: 'UTC', message: 'Now: {{time}}.', runsPerHour: 1 };
    const store = createAgentScheduleStore(gateway);
    const createdAt = new Date().toISOString();
    await store.update(agent, (before) => ({ ...before, own: [{ ...own, createdAt, tainted: true }] }));
    await apiServer.waitForAgent('team-a', 'planner', 'has a schedule', ({ status }) => status?.ownSchedules === 1);
    const inbox = createNatsInbox(gateway);
    const delivery = await inbox.fetchNext(uid, 30_000, NEVER_ABORTED);
    const { message, coordinates } = delivery ?? assert.fail('no message');
    const session = `schedule-once-${at.slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
    assert.deepEqual(
      [message.source, message.tainted, message.text, message.session],
      ['Schedule', true, `Now: ${at.slice(0, 19)}Z.`, session],
    );
    const end = { message: message.id, session, outcome: 'completed', source: 'Schedule' } as const;
    const records = createTaskRecords(gateway, () => UNLIMITED);
    await inbox.ack(coordinates, () => records.end(uid, { ...end, deliveries: 1, endedAt: Date.now() }));
    await pollValue(
      'the end of the schedule',
      () => store.read(agent),
      (stored) => stored.own.length === 0,
    );
    await apiServer.waitForAgent('team-a', 'planner', 'has none', ({ status }) => status?.ownSchedules === undefined);
    assert.equal((await createScheduleStates(gateway).read({ agentUid: uid, id: 'own-1' })).state, undefined);
  });

  it('each of many schedules that are due in one second runs once, while an operator ends and another one begins', async () => {
    const gateway = await fixture().connectGateway();
    const names = Array.from({ length: AGENTS }, (_, index) => `due-${index}`);
    const { due, agents } = await applyScheduled(fixture(), names, 15);
    const inbox = (): Promise<number[]> => messagesOf(gateway, agents);
    const first = fixture().operator;
    await pollValue('the first run', inbox, (counts) => counts.some((count) => count > 0));
    fixture().operator = await fixture().startOperator();
    await first[Symbol.asyncDispose]();
    await pollValue('all runs', inbox, (counts) => counts.every((count) => count > 0));
    const states = createScheduleStates(gateway);
    for (const { uid } of agents) {
      const { state } = await states.read({ agentUid: uid });
      assert.deepEqual([state?.last, state?.missed, state?.skipped], [due.getTime(), 0, 0]);
    }
    assert.deepEqual(
      await inbox(),
      agents.map(() => 1),
    );
  });
}

/** A cron expression that is due once a day, for the first time in some seconds. */
function inSeconds(seconds: number): { due: Date; cron: string } {
  const due = new Date(Math.ceil(Date.now() / 1_000 + seconds) * 1_000);
  return { due, cron: `${due.getUTCSeconds()} ${due.getUTCMinutes()} ${due.getUTCHours()} * * *` };
}

/**
 * Creates agents that are due in some seconds, and waits until the status of each has that time as its next run. On a machine that is too
 * busy for that, others follow with more time.
 */
async function applyScheduled(
  { apiServer }: OperatorNatsFixture,
  prefixes: readonly string[],
  seconds: number,
): Promise<{ due: Date; agents: { uid: string }[] }> {
  for (const lead of [seconds, 4 * seconds, 16 * seconds]) {
    const { due, cron } = inSeconds(lead);
    const names = new Set(prefixes.map((prefix) => `${prefix}-${lead}`));
    const schedule = { mode: 'Periodic', cron, message: 'Report for {{time}}.' };
    const spec = { trustPolicyRef: { name: 'scheduled' }, schedule };
    await Promise.all([...names].map((name) => apiServer.apply(buildAgent('team-a', name, spec))));
    const scheduled = await pollValue(
      'the next run of every agent',
      async () => {
        const all = await apiServer.client.list<StoredAgent>(TYPES.agents, { namespace: 'team-a' }, NEVER_ABORTED);
        return all.filter(({ metadata, status }) => names.has(metadata.name) && nextRunOf(status) !== undefined);
      },
      ({ length }) => length === names.size,
    );
    const text = `${due.toISOString().slice(0, 19)}Z`;
    if (scheduled.every(({ status }) => nextRunOf(status) === text)) {
      return { due, agents: scheduled.map(({ metadata }) => ({ uid: metadata.uid })) };
    }
  }
  assert.fail(`no status had the next run within ${16 * seconds} s`);
}

function nextRunOf(status: StoredAgent['status']): string | undefined {
  return status?.schedule?.nextScheduleTime;
}

async function messagesOf(connection: JetStreamConnection, agents: readonly { uid: string }[]): Promise<number[]> {
  const counts = await messageCounts(connection, STREAMS.inbox, 'temper.inbox.*');
  return agents.map(({ uid }) => counts[`temper.inbox.${uid}`] ?? 0);
}
