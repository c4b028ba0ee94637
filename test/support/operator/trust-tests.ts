import assert from 'node:assert/strict';
import { it } from 'node:test';
import { MAX_TASK_RECORDS } from '../../../src/api/v1alpha1/trust/strategy.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject } from '../../../src/nats/jetstream/names.ts';
import { messageCounts } from '../../../src/nats/jetstream/stream-reader.ts';
import { createTaskRecords } from '../../../src/nats/tasks/task-records.ts';
import { reasonOf } from '../../../src/operator/conditions.ts';
import type { StoredAgent } from '../../../src/operator/kube/types.ts';
import { buildAgent, buildTrustPolicy } from '../builders.ts';
import { newUid } from '../nats/nats-fixture.ts';
import type { OperatorNatsFixture } from '../nats/operator-nats-fixture.ts';
import { NEVER_ABORTED } from '../stubs.ts';

const hasLevel = (level: string) => (agent: StoredAgent) => agent.status?.level === level;
const trustReason = ({ status }: StoredAgent) => reasonOf(status?.conditions, 'TrustLevel');

/** Tests of the levels of agents, for the suite of an operator that is connected to NATS and serves namespace team-a. */
export function trustTests(fixture: () => OperatorNatsFixture): void {
  it('an agent rises by the tasks that a gateway recorded, and an edit of its policy lowers it within seconds', async () => {
    const { apiServer } = fixture();
    const strategy = { type: 'Weighted', minTasks: 3, minRatings: 2, weighted: { thresholds: { standard: 80 } } };
    await apiServer.apply(buildTrustPolicy('team-a', { level: { initial: 'sandboxed' }, strategy }, 'rising'));
    await apiServer.apply(buildAgent('team-a', 'riser', { trustPolicyRef: { name: 'rising' } }));
    const fresh = await apiServer.waitForAgent('team-a', 'riser', 'has a level', hasLevel('sandboxed'));
    const { uid } = fresh.metadata;
    const gateway = await fixture().connectGateway();
    const audit = createNatsAudit(gateway);
    // What pods report about themselves is another stream, which no rule of trust reads.
    const claim = {
      action: 'task.completed',
      actor: 'agent/riser',
      evidence: 'reported',
      subject: uid,
      facts: {},
    } as const;
    for (let claims = 0; claims < 20; claims += 1) await audit.append({ namespace: 'team-a', agentUid: uid }, claim);
    await recordTasks(gateway, uid, { tasks: 5, ratings: 1 });
    const summaries = () => createTaskRecords(gateway, () => UNLIMITED).read(uid);
    assert.equal((await summaries()).filter(({ rating }) => rating === 9).length, 1);
    await recordTasks(gateway, uid, { tasks: 5, ratings: 5 });
    const risen = await apiServer.waitForAgent('team-a', 'riser', 'has risen', hasLevel('restricted'));
    assert.equal(risen.status?.trust?.level, 'restricted');
    assert.equal(risen.status?.trust?.agentUid, uid);
    assert.equal(trustReason(risen), 'Raised');
    const raised = (await audit.read('team-a', 'observed', 0, 1_000)).filter(({ action }) => action === 'trust.raised');
    assert.deepEqual(
      raised.map(({ subject, facts }) => [subject, facts['from'], facts['to']]),
      [['agent/riser', 'sandboxed', 'restricted']],
    );
    const lower = { level: { initial: 'sandboxed', ceiling: 'sandboxed' }, strategy };
    await apiServer.apply(buildTrustPolicy('team-a', lower, 'rising'));
    const cut = await apiServer.waitForAgent('team-a', 'riser', 'is cut', hasLevel('sandboxed'));
    assert.equal(cut.status?.trust?.level, 'restricted', 'what the agent earned stays recorded');
  });

  it('an agent without a task is lowered once per idle period', async () => {
    const { apiServer } = fixture();
    const policy = { level: { initial: 'standard' }, decay: { idle: '3s' } };
    await apiServer.apply(buildTrustPolicy('team-a', policy, 'decaying'));
    await apiServer.apply(buildAgent('team-a', 'idler', { trustPolicyRef: { name: 'decaying' } }));
    const first = await apiServer.waitForAgent('team-a', 'idler', 'is lowered', hasLevel('restricted'));
    assert.equal(trustReason(first), 'Lowered');
    const second = await apiServer.waitForAgent('team-a', 'idler', 'is lowered again', hasLevel('sandboxed'));
    const times = [first, second].map(({ status }) => Date.parse(status?.trust?.loweredAt ?? ''));
    assert.ok((times[1] ?? 0) - (times[0] ?? 0) >= 3_000, times.join(', '));
  });

  it('the records of an agent are bounded, and the oldest ones go first', async () => {
    const gateway = await fixture().connectGateway();
    const uid = newUid();
    await recordTasks(gateway, uid, { tasks: MAX_TASK_RECORDS + 100, ratings: 0 });
    const counts = await messageCounts(gateway, bucketStream(BUCKETS.tasks), bucketSubject(BUCKETS.tasks, `${uid}.>`));
    assert.ok(Object.keys(counts).length <= MAX_TASK_RECORDS + 50, String(Object.keys(counts).length));
    const resident = { namespace: 'team-a', name: 'analyst', uid };
    await fixture().operator.parts.agentActivity.deleteAgentData(resident, NEVER_ABORTED);
    assert.deepEqual(await createTaskRecords(gateway, () => UNLIMITED).read(uid), []);
  });
}

const UNLIMITED = { reserve: async () => undefined };
let recorded = 0;

/** Completed tasks as a gateway records them, the first ones rated 9 of 10. */
async function recordTasks(
  gateway: JetStreamConnection,
  uid: string,
  { tasks, ratings }: { tasks: number; ratings: number },
): Promise<void> {
  const records = createTaskRecords(gateway, () => UNLIMITED);
  const end = { session: 's-1', outcome: 'completed', deliveries: 1, endedAt: Date.now() } as const;
  for (let task = 0; task < tasks; task += 1) {
    const message = `msg-${(recorded += 1)}`;
    await records.end(uid, { ...end, message });
    if (task < ratings) await records.rate(uid, message, { rating: 9 });
  }
}
