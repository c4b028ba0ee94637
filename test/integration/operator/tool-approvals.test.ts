import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { attestationName } from '../../../src/api/cluster.ts';
import type { Approval } from '../../../src/api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool, ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { signHead } from '../../../src/audit/stream-chain.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { reasonOf } from '../../../src/operator/conditions.ts';
import {
  type PlainObject,
  type Stored as StoredObject,
  type StoredAgent,
  TYPES,
} from '../../../src/operator/kube/types.ts';
import type { TrustChange, TrustEvidence } from '../../../src/operator/ports.ts';
import { ToolAttestations } from '../../../src/operator/provenance/attestations.ts';
import { headKeysOf, rotateAuditKeys } from '../../../src/operator/provenance/audit-key.ts';
import { pruneTool } from '../../../src/operator/tool/stored-tool.ts';
import { foldEvidence } from '../../../src/policy/trust/evidence.ts';
import { manyTasks } from '../../../src/policy/trust/trust.testing.ts';
import { openEnvelope } from '../../../src/tempering/attestation/envelope.ts';
import { assertStatementAbout } from '../../../src/tempering/attestation/statement.ts';
import type { MessageToolCalls } from '../../../src/tempering/hygiene/tool-calls.ts';
import { findTools } from '../../../src/tempering/hygiene/tool-findings.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import {
  agentObject,
  ALICE,
  approval,
  ApprovalsFixture,
  BOB,
  connectAs,
  digestOfArtifact,
  GITOPS,
  NAMESPACE,
  OPERATOR,
  promotionOf,
  sharedNameOf,
  sharedObject,
  type Stored,
} from '../../support/operator/approvals-fixture.ts';
import { BYPASSES } from '../../support/operator/approval-bypasses.ts';
import { buildAgent, buildTrustPolicy } from '../../support/builders.ts';
import { writesOf } from '../../support/operator/start-operator.ts';
import { testExists } from '../../support/named-test.ts';
import { poll } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';
import { agentApprovalTests } from './suites/agent-approval.ts';
import { badInputTests } from './suites/bad-input.ts';
import { honestOutputs } from '../../support/promotion/simulated-verifier.ts';

const DOUBLED = honestOutputs(({ value }: { value: number }) => ({ result: value * 2 }));
const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';
const ELEVATING = {
  type: 'Weighted',
  minTasks: 3,
  requireHuman: ['elevated'],
  weighted: { thresholds: { elevated: 70 } },
};

const audited: TrustChange[] = [];
/** What pods report about their calls, by the UID of their agent. */
const reportedCalls = new Map<string, MessageToolCalls[]>();
/** Every agent has completed a hundred tasks well. */
const trustEvidence: TrustEvidence = {
  get: (_agentUid, marks) => foldEvidence(manyTasks(100, { rating: 9, endedAt: Date.now() }), marks),
  tools: (agentUid, { maxHarmPercent, maxErrorPercent, tools }) => ({
    findings: findTools(
      { tasks: [], calls: reportedCalls.get(agentUid) ?? [] },
      { maxHarmPercent, maxErrorPercent },
      tools,
    ),
    orders: [],
    usedTogether: [],
  }),
  forget: () => undefined,
  async *updates(signal) {
    while (!signal.aborted) {
      yield [...reportedCalls.keys()];
      await systemClock.sleep(200, signal).catch(() => undefined);
    }
  },
  record: async (change) => void audited.push(change),
};

const isPending = ({ status }: StoredAgent) => reasonOf(status?.conditions, 'TrustLevel') === 'ApprovalPending';
const hasLevel = (level: string, agent: StoredAgent) => (agent.status?.level === level ? agent : undefined);

function trustApproval(name: string, nonce: string, subject: object, by = ALICE) {
  const spec = { decision: 'Approve', nonce, subject, approvedBy: { username: by.user } };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Approval', metadata: { name, namespace: NAMESPACE }, spec };
}

/** The operator's account may store the attestation of a Shared tool, which its key verifies. */
async function assertAttested(
  fixture: ApprovalsFixture,
  { metadata }: Stored<EmergentTool>,
  name: string,
): Promise<void> {
  await using transport = await connectAs(fixture.apiServer.plane, OPERATOR);
  const client = createKubeClient(transport);
  const ref = { namespace: NAMESPACE, name: metadata.name };
  const shared = await client.get<StoredObject<EmergentTool>>(TYPES.emergentTools, ref, NEVER_ABORTED);
  assert.ok(shared);
  const keys = rotateAuditKeys(undefined, new Date());
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const head = signHead({ sequence: 1, records: 1, digest: shared.spec.digest }, { time: inAnHour }, headKeysOf(keys));
  const record = { name, by: ALICE.user, createdAt: inAnHour, decision: 'Approve', nonce: NONCE } as const;
  const attestations = new ToolAttestations({
    client,
    clock: systemClock,
    sharedTools: () => [pruneTool(shared)],
    requestOf: () => undefined,
    approvalOf: () => ({ ...record, subject: { promotion: promotionOf(shared.spec.artifact) } }),
  });
  await attestations.round(async () => ({ head, privateKey: keys.privateKey }), NEVER_ABORTED);
  const place = { namespace: NAMESPACE, name: attestationName(shared.metadata) };
  const stored = await fixture.apiServer.client.get<PlainObject>(TYPES.configMaps, place, NEVER_ABORTED);
  const { 'attestation.json': envelope = '' } = (stored?.['data'] ?? {}) as Record<string, string>;
  assertStatementAbout(openEnvelope(envelope, keys.publicKeys.join('')), shared.spec.digest);
}

/** Writes of another kind and of this kind, without those of verifier pods and of the conditions of Approvals. */
function partition(writes: readonly string[], kind: string): [others: string[], ofKind: string[]] {
  const counted = writes.filter((write) => !/ (?:pods|approvals\/status)$/.test(write));
  return [counted.filter((write) => write !== kind), counted.filter((write) => write === kind)];
}

describe('the approval of a tool on a real API server', () => {
  let fixture: ApprovalsFixture;
  const requestOf = (artifact: ToolArtifact): Promise<Stored<ApprovalRequest>> =>
    poll(`a request for ${artifact.name}`, async () => {
      const requests = await fixture.list<ApprovalRequest>('approvalRequests');
      return requests.find(({ spec }) => spec.subject.promotion?.digest === digestOfArtifact(artifact));
    });
  const eventReasons = async (name: string): Promise<string[]> => {
    const events = await fixture.list<{ involvedObject: { name: string }; reason: string }>('events');
    return events.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason }) => reason);
  };

  before(async () => {
    fixture = await ApprovalsFixture.open({ trustEvidence });
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  agentApprovalTests(() => fixture);

  it('a verified tool asks for an approval, is shared by it, and a revocation permanently removes both objects', async () => {
    const artifact = anArtifact('life');
    const name = sharedNameOf(artifact);
    const { metadata } = await fixture.agentTool(artifact);
    const request = await requestOf(artifact);
    assert.deepEqual(request.spec.review?.agents, ['analyst']);
    assert.equal(request.spec.review?.object, metadata.name);
    await fixture.reason('emergenttools', metadata.name, 'Shared', 'AwaitingApproval');
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'AwaitingApproval');

    fixture.sent.length = 0;
    const approved = await fixture.approve(ALICE, promotionOf(artifact), request.spec.nonce, 'life-alice');
    const shared = await fixture.reason('emergenttools', name, 'Active', 'Approved');
    assert.equal(shared.status?.active, true);
    assert.deepEqual(shared.spec.artifact, artifact);
    assert.equal(shared.metadata.ownerReferences, undefined);
    await assertAttested(fixture, shared, approved);
    const own = await fixture.reason('emergenttools', metadata.name, 'Active', 'Promoted');
    assert.deepEqual([own.status?.active, own.status?.promotion], [false, 'Promoted']);
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'Approved');
    const decided = await fixture.read<ApprovalRequest>('approvalrequests', request.metadata.name);
    assert.deepEqual([decided?.status?.decision, decided?.status?.decidedBy], ['Approve', 'alice']);
    await poll('an Event of the Shared tool', async () => (await eventReasons(name)).includes('Approved'));
    // The status of a policy counts its agents, whenever one of an earlier test has ended.
    const writes = (): string[] => writesOf(fixture.sent).filter((write) => write !== 'PATCH trustpolicies/status');
    const [shares, statuses] = partition(writes(), 'PATCH emergenttools/status');
    assert.deepEqual(shares, ['PATCH approvalrequests/status', 'POST emergenttools']);
    // Verifying and Approved of one object; of the other one that it waits, perhaps twice, and Promoted.
    assert.ok(statuses.length <= 5, statuses.join());
    fixture.sent.length = 0;

    const revoke = { nonce: request.spec.nonce, name: 'life-revoked', decision: 'Revoke', reason: 'wrong totals' };
    await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(artifact), revoke));
    const revoked = await fixture.reason('emergenttools', name, 'Active', 'Revoked');
    assert.equal(revoked.status?.active, false);
    await fixture.reason('emergenttools', metadata.name, 'Active', 'Revoked');
    await fixture.reason('approvals', approved, 'Effective', 'Withdrawn');
    const [others, revocations] = partition(writes(), 'PATCH emergenttools/status');
    assert.deepEqual([others, revocations.length], [[], 2]);

    assert.equal((await fixture.call('DELETE', `emergenttools/${name}`)).status, 200);
    await fixture.mustCreate(GITOPS, sharedObject(artifact, request.spec.nonce));
    await fixture.mustCreate(
      GITOPS,
      approval(GITOPS, promotionOf(artifact), { nonce: request.spec.nonce, name: 'again' }),
    );
    await fixture.reason('approvals', 'again', 'Effective', 'Withdrawn');
    await fixture.reason('emergenttools', name, 'Active', 'Revoked');
  });

  it('only the approval of a user raises an agent to elevated, once, and an edit of its spec ends it', async () => {
    const { apiServer } = fixture;
    const level = { initial: 'standard', ceiling: 'elevated' };
    await apiServer.apply(buildTrustPolicy(NAMESPACE, { level, strategy: ELEVATING }, 'elevating'));
    const agent = buildAgent(NAMESPACE, 'climber', { trustPolicyRef: { name: 'elevating' } });
    await apiServer.apply(agent);
    const waiting = await apiServer.waitForAgent(NAMESPACE, 'climber', 'asks', isPending);
    assert.equal(waiting.status?.level, 'standard');
    const requestsOf = async () =>
      (await fixture.list<ApprovalRequest>('approvalRequests')).filter(({ spec }) => spec.agent.name === 'climber');
    const [request, ...others] = await requestsOf();
    assert.ok(request !== undefined && others.length === 0);
    const { nonce, subject } = request.spec;
    const forged = { trust: { ...subject.trust, agentSpecDigest: `sha256:${'0'.repeat(64)}` } };
    await fixture.mustCreate(ALICE, trustApproval('of-another-spec', nonce, forged));
    await fixture.mustCreate(ALICE, trustApproval('of-another-request', `${nonce}x`, subject));
    const refused = await fixture.create(BOB, trustApproval('of-bob', nonce, subject, BOB));
    assert.notEqual(refused.status, 201, 'a user who may not approve');
    const elevated = await poll('the agent at level elevated', async () => {
      await fixture.mustCreate(ALICE, trustApproval(`yes-${Date.now().toString(36)}`, nonce, subject));
      return poll('elevated', async () => hasLevel('elevated', await apiServer.getAgent(NAMESPACE, 'climber')), {
        timeoutMs: 6_000,
      });
    });
    assert.equal(elevated.status?.trust?.approved?.[0]?.level, 'elevated');
    assert.equal((await requestsOf())[0]?.status?.decision, 'Approve');
    assert.deepEqual(
      audited.filter(({ agent: { name } }) => name === 'climber').map(({ transition }) => transition.kind),
      ['Approved'],
    );
    await apiServer.apply({ ...agent, spec: { ...agent.spec, prompt: { system: 'Be quick.' } } });
    const dropped = await apiServer.waitForAgent(
      NAMESPACE,
      'climber',
      'is dropped',
      ({ status }) => status?.level === 'standard',
    );
    assert.equal(dropped.status?.trust?.approved, undefined);
    await apiServer.waitForAgent(NAMESPACE, 'climber', 'asks again', isPending);
    await apiServer.apply({ ...agent, spec: { ...agent.spec, prompt: { system: 'Be kind.' } } });
    const decisionsOf = async () => (await requestsOf()).map(({ status }) => status?.decision ?? 'Open').sort();
    await poll('one open request', async () => String(await decisionsOf()) === 'Approve,Expired,Open');
  });

  it('a tool and its Approval from Git activate in either order, and only their status is written', async () => {
    for (const toolFirst of [true, false]) {
      const artifact = anArtifact(toolFirst ? 'git_tool' : 'git_approval');
      const tool = sharedObject(artifact, NONCE);
      const decision = approval(GITOPS, promotionOf(artifact), {
        nonce: NONCE,
        name: `${artifact.name.replace('_', '-')}-git`,
      });
      if (toolFirst) {
        await fixture.mustCreate(GITOPS, tool);
        await fixture.reason('emergenttools', tool.metadata.name, 'Active', 'ApprovalMissing');
        await fixture.mustCreate(GITOPS, decision);
      } else {
        await fixture.mustCreate(GITOPS, decision);
        await fixture.reason('approvals', decision.metadata.name, 'Effective', 'SubjectNotFound');
        await fixture.mustCreate(GITOPS, tool);
      }
      const active = await fixture.reason('emergenttools', tool.metadata.name, 'Active', 'Approved');
      await fixture.reason('approvals', decision.metadata.name, 'Effective', 'Applied');
      assert.equal(active.metadata.generation, 1);
      assert.deepEqual(active.spec, tool.spec);
      const writers = active.metadata.managedFields as { manager: string; subresource?: string }[];
      const unexpected = writers.filter(
        ({ manager, subresource }) => manager === 'temper-operator' && subresource !== 'status',
      );
      assert.deepEqual(unexpected, []);
    }
  });

  it('an approved tool whose tests fail on this cluster is not in service, and says so', async () => {
    const artifact = anArtifact('broken');
    fixture.behaviour = honestOutputs(() => ({ result: 'wrong' }));
    try {
      await fixture.mustCreate(GITOPS, sharedObject(artifact, NONCE));
      await fixture.approve(GITOPS, promotionOf(artifact), NONCE, 'broken-git');
      const tool = await fixture.reason('emergenttools', sharedNameOf(artifact), 'Active', 'VerificationFailed');
      assert.equal(tool.status?.active, false);
      const { result, tests, failedTests, reruns } = tool.status.verification ?? {};
      assert.deepEqual([result, tests, failedTests, reruns], ['Failed', 1, 1, 0]);
      const message = tool.status.conditions?.find(({ type }) => type === 'Active')?.message ?? '';
      assert.match(message, /1 of 1 tests failed in a fresh runner; have the agent forge a corrected version/);
      await poll('an Event', async () => (await eventReasons(tool.metadata.name)).includes('VerificationFailed'));
      const records = await createNatsAudit(fixture.gateway).all(NAMESPACE, 10_000);
      const own = records.filter(({ subject }) => subject === tool.spec.digest).map(({ action }) => action);
      assert.deepEqual(own, ['tool.verification-failed']);
    } finally {
      fixture.behaviour = DOUBLED;
    }
  });

  it('a run that its operator left goes on with the next one, and a pod that sends nothing usable decides nothing', async () => {
    const artifact = anArtifact('resumed');
    const pods: string[] = [];
    let isAnswering = false;
    fixture.behaviour = (work, pod) => {
      if (!pods.includes(pod.metadata.name)) pods.push(pod.metadata.name);
      if (pods.length === 1) return { attempt: work.attempt, outputs: [] };
      return isAnswering ? DOUBLED(work, pod) : undefined;
    };
    try {
      await fixture.mustCreate(GITOPS, sharedObject(artifact, NONCE));
      await fixture.approve(GITOPS, promotionOf(artifact), NONCE, 'resumed-git');
      await poll('the second pod has the work', async () => pods.length === 2);
      const waiting = await fixture.reason('emergenttools', sharedNameOf(artifact), 'Active', 'Verifying');
      assert.equal(waiting.status?.active, false);
      await fixture.stopOperator();
      await fixture.startOperator();
      isAnswering = true;
      const tool = await fixture.reason('emergenttools', sharedNameOf(artifact), 'Active', 'Approved');
      assert.equal(tool.status?.verification?.result, 'Passed');
      assert.equal(pods.length, 2, 'the next operator continues with the pod');
      const records = await createNatsAudit(fixture.gateway).all(NAMESPACE, 10_000);
      const own = records.filter(({ subject }) => subject === tool.spec.digest).map(({ action }) => action);
      assert.deepEqual(own, ['tool.verified', 'tool.promoted']);
    } finally {
      fixture.behaviour = DOUBLED;
    }
  });

  it('a tool in service whose tests fail in a scheduled run is demoted for all, by a revocation', async () => {
    const artifact = anArtifact('aged');
    const name = sharedNameOf(artifact);
    await fixture.mustCreate(GITOPS, sharedObject(artifact, NONCE));
    await fixture.approve(GITOPS, promotionOf(artifact), NONCE, 'aged-git');
    const active = await fixture.reason('emergenttools', name, 'Active', 'Approved');
    fixture.behaviour = (work, pod) => {
      const isOther = work.artifact.name !== 'aged';
      return (isOther ? DOUBLED : honestOutputs(() => ({ result: 0 })))(work, pod);
    };
    try {
      const decay = { reverifyEvery: '1h' };
      await fixture.apiServer.apply(buildTrustPolicy(NAMESPACE, { level: { initial: 'standard' }, decay }, 'aging'));
      const long = new Date(Date.now() - 2 * 3_600_000).toISOString();
      const verification = { ...active.status?.verification, verifiedAt: long };
      const { status } = await fixture.call('PATCH', `emergenttools/${name}/status`, {
        as: OPERATOR,
        contentType: 'application/merge-patch+json',
        body: { status: { verification } },
      });
      assert.equal(status, 200);
      const demoted = await fixture.reason('emergenttools', name, 'Active', 'Demoted');
      assert.equal(demoted.status?.active, false);
      assert.deepEqual(demoted.spec, active.spec, 'nothing of the spec is written');
      const approvals = await fixture.list<Approval>('approvals');
      const own = approvals.filter(({ spec }) => spec.subject.promotion?.digest === digestOfArtifact(artifact));
      const [revocation] = own.filter(({ spec }) => spec.decision === 'Revoke');
      assert.deepEqual(
        [revocation?.spec.approvedBy.username, revocation?.spec.reason],
        [OPERATOR.user, '1 of 1 tests failed in a fresh runner'],
      );
      const records = await createNatsAudit(fixture.gateway).all(NAMESPACE, 10_000);
      const actions = records.filter(({ subject }) => subject === active.spec.digest).map(({ action }) => action);
      assert.deepEqual(actions, ['tool.verified', 'tool.promoted', 'tool.verification-failed', 'tool.demoted']);
    } finally {
      fixture.behaviour = DOUBLED;
      await fixture.call('DELETE', 'trustpolicies/aging');
    }
  });

  it('an agent that reports failures of a Shared tool loses it alone, and reports of two agents run its tests', async () => {
    const artifact = anArtifact('accused');
    const name = sharedNameOf(artifact);
    await fixture.mustCreate(GITOPS, sharedObject(artifact, NONCE));
    await fixture.approve(GITOPS, promotionOf(artifact), NONCE, 'accused-git');
    const before = await fixture.reason('emergenttools', name, 'Active', 'Approved');
    const digest = digestOfArtifact(artifact);
    const accuse = async (agent: string): Promise<StoredAgent> => {
      const calls = Array.from({ length: 20 }, (_, index) => {
        const tools = [{ digest, calls: 1, failures: 1 }];
        return { message: `msg-${agent}-${index}`, endedAt: Date.now(), tools };
      });
      reportedCalls.set(await fixture.agentUid(agent), calls);
      return poll(`${agent} to lose the tool`, async () => {
        const found = await fixture.apiServer.getAgent(NAMESPACE, agent);
        return found.status?.deactivatedTools?.some((entry) => entry.digest === digest) === true ? found : undefined;
      });
    };
    try {
      const liar = await accuse('analyst');
      const [entry] = liar.status?.deactivatedTools ?? [];
      assert.deepEqual([entry?.cause, entry?.message], ['Failing', '20 of its last 20 uses failed, 15 % are allowed']);
      await poll('the Event', async () =>
        (await eventReasons('analyst')).includes('ToolDeactivated') ? true : undefined,
      );
      const afterLie = await fixture.reason('emergenttools', name, 'Active', 'Approved');
      assert.equal(
        afterLie.status?.verification?.verifiedAt,
        before.status?.verification?.verifiedAt,
        'no run started',
      );
      const neighbour = await fixture.apiServer.getAgent(NAMESPACE, 'reviewer');
      assert.deepEqual(neighbour.status?.deactivatedTools ?? [], []);
      await accuse('reviewer');
      const verified = await poll('the second run of its tests', async () => {
        const found = await fixture.read<EmergentTool>('emergenttools', name);
        return found?.status?.verification?.verifiedAt === before.status?.verification?.verifiedAt ? undefined : found;
      });
      assert.deepEqual([verified.status?.verification?.result, verified.status?.active], ['Passed', true]);
      const records = await createNatsAudit(fixture.gateway).all(NAMESPACE, 10_000);
      const own = records.filter(({ subject }) => subject === digest);
      assert.deepEqual(
        own.map(({ action, facts }) => [action, facts['agent'] ?? facts['cause'] ?? '']),
        [
          ['tool.verified', 'Approval'],
          ['tool.promoted', ''],
          ['tool.deactivated', 'analyst'],
          ['tool.deactivated', 'reviewer'],
          ['tool.verified', 'Outcomes'],
        ],
      );
    } finally {
      reportedCalls.clear();
    }
  });

  it('a denial is final for its request, and the tool stays with its agent', async () => {
    const artifact = anArtifact('denied');
    const { metadata } = await fixture.agentTool(artifact);
    const request = await requestOf(artifact);
    const denial = { nonce: request.spec.nonce, name: 'denied-alice', decision: 'Deny', reason: 'not useful' };
    await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(artifact), denial));
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'Denied');
    const tool = await fixture.reason('emergenttools', metadata.name, 'Shared', 'ApprovalDenied');
    assert.deepEqual([tool.status?.active, tool.status?.promotion], [true, 'Rejected']);
    await fixture.mustCreate(
      ALICE,
      approval(ALICE, promotionOf(artifact), { nonce: request.spec.nonce, name: 'denied-late' }),
    );
    await fixture.reason('approvals', 'denied-late', 'Effective', 'Withdrawn');
    assert.equal(await fixture.read('emergenttools', sharedNameOf(artifact)), undefined);
  });

  it('a request whose tool is gone expires, and an Approval of it applies to nothing', async () => {
    const artifact = anArtifact('gone');
    const { metadata } = await fixture.agentTool(artifact);
    const request = await requestOf(artifact);
    assert.equal((await fixture.call('DELETE', `emergenttools/${metadata.name}`)).status, 200);
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'Expired');
    await fixture.approve(ALICE, promotionOf(artifact), request.spec.nonce, 'gone-alice');
    assert.equal(await fixture.read('emergenttools', sharedNameOf(artifact)), undefined);
  });

  it('two agents with one tool make one request', async () => {
    const artifact = anArtifact('twice');
    await fixture.agentTool(artifact);
    await requestOf(artifact);
    const second = await fixture.agentTool(artifact, 'reviewer');
    await fixture.reason('emergenttools', second.metadata.name, 'Shared', 'AwaitingApproval');
    const requests = await fixture.list<ApprovalRequest>('approvalRequests');
    const own = requests.filter(({ spec }) => spec.subject.promotion?.digest === digestOfArtifact(artifact));
    assert.equal(own.length, 1);
  });

  it('an object of tier Agent that no verification wrote is never in service', async () => {
    const artifact = anArtifact('smuggled');
    const object = agentObject(artifact, 'analyst', await fixture.agentUid('analyst'));
    const created = await fixture.mustCreate<EmergentTool>(ALICE, object);
    assert.equal(created.status, undefined);
    const restored = await fixture.read<EmergentTool>('emergenttools', object.metadata.name);
    assert.notEqual(restored?.status?.active, true);
    assert.equal(restored?.metadata.namespace, NAMESPACE);
  });

  badInputTests(() => fixture);

  for (const [index, { title, refused, inert, elsewhere }] of BYPASSES.entries()) {
    it(`bypass ${index + 1} of an approval has no effect: ${title}`, async () => {
      if (elsewhere !== undefined)
        assert.ok(testExists(elsewhere), `${elsewhere.file} has no test "${elsewhere.name}"`);
      if (refused !== undefined) {
        const { status, body } = await refused(fixture);
        assert.ok(status === 403 || status === 422, `${status}: ${JSON.stringify(body)}`);
      }
      if (inert === undefined) return;
      const { name, reason } = await inert(fixture);
      await poll(`${name} out of service`, async () => {
        const { status } = await fixture.reason('emergenttools', name, 'Active', reason);
        return status?.active === false;
      });
    });
  }
});
