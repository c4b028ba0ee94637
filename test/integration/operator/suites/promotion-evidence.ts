import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import type { Condition } from '../../../../src/api/v1alpha1/common.ts';
import type { EmergentTool, EmergentToolSpec } from '../../../../src/api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../../src/kube/informer/store.ts';
import { type Digest, digestOf } from '../../../../src/lib/canonical.ts';
import { TYPES } from '../../../../src/operator/kube/types.ts';
import { sharedName } from '../../../../src/operator/tool/stored-tool.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { createTaskRecords } from '../../../../src/nats/tasks/task-records.ts';
import { createSupervisor, type Supervisor } from '../../../../src/sandbox/supervisor.ts';
import type { ToolUse } from '../../../../src/tempering/types.ts';
import { poll, pollValue } from '../../../support/poll.ts';
import { NEVER_ABORTED } from '../../../support/stubs.ts';
import { doubled, type PromotionFixture, REVIEWERS } from '../../../support/promotion/promotion-fixture.ts';
import { honestOutputs, sandboxedOutputs } from '../../../support/promotion/simulated-verifier.ts';
import { WORKED_FORGES, workedForge, workedUses } from '../../../support/promotion/worked-forges.ts';

/** Applies the object of tier Shared as a GitOps account does, and returns the condition `Active` that the operator writes. */
async function applyShared({ apiServer }: PromotionFixture, spec: EmergentToolSpec): Promise<Condition> {
  const name = sharedName('team-a', spec.artifact.name, spec.digest as Digest);
  const object = {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: { name, namespace: 'team-a' },
    spec: { ...spec, tier: 'Shared', requestNonce: 'from-git-0123456789abcdef' },
  };
  await apiServer.client.create(TYPES.emergentTools, object, NEVER_ABORTED);
  return poll('the status of the Shared object', async () => {
    const found = await apiServer.client.get<KubeObject & EmergentTool>(
      TYPES.emergentTools,
      { namespace: 'team-a', name },
      NEVER_ABORTED,
    );
    return found?.status?.conditions?.find(({ type }) => type === 'Active');
  });
}

/** What pods report, what gateways observe, and what re-runs make of it. */
export function promotionEvidence(open: () => PromotionFixture): void {
  let sandbox: Supervisor;
  before(async () => {
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(() => sandbox?.[Symbol.asyncDispose]());

  it('reported uses of a lying agent pod open a verification, never promote, and lower the level of the agent', async () => {
    const trust = { level: { initial: 'standard' }, decay: { maxErrorPercent: 15 } };
    const fixture = open();
    const agent = await fixture.prepare({ models: REVIEWERS, ...trust });
    const tasks = createTaskRecords(fixture.gateway, () => ({ reserve: async () => undefined }));
    for (let task = 0; task < 6; task += 1) {
      const end = { session: 's1', outcome: 'completed', deliveries: 1, endedAt: Date.now() } as const;
      await tasks.end(agent.uid, { message: `m-${task}`, ...end });
    }
    // The tool does not do what its pod reported.
    fixture.behaviour = honestOutputs(() => ({ result: 'wrong' }));
    await fixture.request(agent);
    const record = await fixture.settled(agent);
    assert.equal(record?.state, 'Rejected');
    assert.match(record.reason, /contradict the pod of the agent: 1 tests .*, 5 outputs .*; 1 of 1 tests failed/);
    assert.deepEqual(await fixture.objectsOf(agent.name), []);
    assert.deepEqual(fixture.reviews, [], 'the panel is not asked');
    assert.deepEqual(record.evidence?.contradicted, { tests: 1, uses: 5 });
    const lowered = await pollValue(
      'the level of the agent',
      () => fixture.apiServer.getAgent('team-a', agent.name),
      ({ status }) => status?.level === 'restricted',
    );
    assert.match(lowered.status?.trust?.reason ?? '', /6 of the last 12 tasks failed/);
    const recorded = await fixture.decisionsOf(agent.uid);
    assert.deepEqual(recorded, ['tool.promotion-refused', 'tool.reports-contradicted', 'trust.lowered']);
    await fixture.request(agent, 7);
    await fixture.request(agent, 8);
    assert.equal((await fixture.settled(agent))?.attempt, record.attempt, 'no attempt during the cool-down');
  });

  /** A recorded call with an answer that only the pod saw. */
  const reported: Partial<ToolUse> = {
    recording: {
      ok: true,
      recording: {
        calls: [
          {
            name: 'file_read',
            input: { path: 'orders.csv' },
            answer: { ok: true, value: 'x'.repeat(200_000) },
            evidence: 'reported',
          },
        ],
      },
    },
  };

  it('answers that only the pod reported carry no promotion, unless the policy allows it, and never to tier Shared', async () => {
    const fixture = open();
    const before = fixture.served.length;
    const denied = await fixture.prepare({ models: REVIEWERS }, 5, { use: () => reported });
    await fixture.request(denied);
    const waiting = await fixture.settled(denied);
    assert.equal(waiting?.state, 'Candidate', JSON.stringify(waiting));
    assert.match(
      waiting.missing.join(),
      /0 of 5 .*5 have answers that only the pod reported.*reportedEvidence is Deny/,
    );
    assert.equal(fixture.served.length, before, 'no pod is assigned');

    const policy = { models: REVIEWERS, promotion: { toAgent: { reportedEvidence: 'Allow' } } };
    const allowed = await fixture.prepare(policy, 5, { use: () => reported });
    const works: string[] = [];
    fixture.behaviour = (work, pod) => {
      works.push(JSON.stringify(work));
      return doubled(work, pod);
    };
    await fixture.request(allowed);
    const record = await fixture.settled(allowed);
    assert.equal(record?.state, 'Promoted', JSON.stringify(record));
    assert.deepEqual([record.figures.observedAnswers, record.figures.reportedAnswers], [0, 5]);
    assert.match(record.note, /recorded answers: 0 observed, 5 reported by the pod/);
    const [work = ''] = works;
    assert.equal(work.split('"file_read"').length - 1, 5, 'the pod gets the recorded answers');
    assert.ok(!work.includes(digestOf({ result: 20 })) && !work.includes('m-10'), 'and no output of a use');
    const conditionsOf = async () => (await fixture.objectsOf(allowed.name))[0]?.status?.conditions ?? [];
    const conditions = await pollValue('the refusal of tier Shared', conditionsOf, (all) =>
      all.some(({ type }) => type === 'Shared'),
    );
    const reasons = conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
    assert.ok(reasons.includes('Shareable=False ReportedAnswers'), reasons.join());
    assert.ok(reasons.includes('Shared=False NotShareable'), reasons.join());
    const [own] = await fixture.objectsOf(allowed.name);
    assert.ok(own !== undefined);
    const refused = await applyShared(fixture, own.spec);
    assert.deepEqual([refused.status, refused.reason], ['False', 'ReportedAnswers'], 'nor by an object from Git');
    const { client } = fixture.apiServer;
    for (const name of [own.metadata.name, sharedName('team-a', own.spec.artifact.name, own.spec.digest as Digest)])
      await client.delete(TYPES.emergentTools, { namespace: 'team-a', name }, {}, NEVER_ABORTED);
    await client.delete(TYPES.agents, { namespace: 'team-a', name: allowed.name }, {}, NEVER_ABORTED);
    const again = await applyShared(fixture, own.spec);
    assert.deepEqual([again.status, again.reason], ['False', 'ReportedAnswers'], 'nor after all objects are deleted');
  });

  it('a use whose re-run gives another output than the pod reported is a failed re-run', async () => {
    const fixture = open();
    const output = digestOf({ result: 'invented' });
    const agent = await fixture.prepare({ models: REVIEWERS }, 5, { use: () => ({ output }) });
    await fixture.request(agent);
    const record = await fixture.settled(agent);
    assert.equal(record?.state, 'Rejected', JSON.stringify(record));
    assert.match(record.reason, /the success rate is 0 % \(0 of 5\)/);
  });

  for (const forge of Object.keys(WORKED_FORGES)) {
    it(`the worked forge ${forge} reaches tier Agent by re-runs in a sandbox, unless it needs what no gateway carries`, async () => {
      const fixture = open();
      const artifact = await workedForge(forge);
      const uses = await workedUses(forge, artifact, sandbox);
      fixture.behaviour = sandboxedOutputs(sandbox);
      const agent = await fixture.prepare({ models: REVIEWERS }, 5, {
        artifact,
        use: (index) => uses[index] ?? {},
      });
      await fixture.request(agent);
      const record = await fixture.settled(agent);
      if (forge === 'check_http_status') {
        assert.equal(record?.state, 'Candidate', JSON.stringify(record));
        assert.match(record.missing.join(), /5 have answers that only the pod reported/);
        return;
      }
      assert.equal(record?.state, 'Promoted', JSON.stringify(record));
      const replays = uses.filter(({ recording }) => recording !== undefined).length;
      assert.deepEqual(
        [record.figures.successes, record.figures.observedAnswers, record.figures.reportedAnswers],
        [5, replays, 0],
      );
      const [object] = await fixture.objectsOf(agent.name);
      assert.equal(object?.status?.active, true, JSON.stringify(object?.status));
    });
  }
}
