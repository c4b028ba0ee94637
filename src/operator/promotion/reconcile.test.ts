import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { VerificationWork } from '../../gateway-api/verification/verification-schemas.ts';
import { ApiError, type KubeClient, type ResourceType } from '../../kube/client/kube-client.ts';
import type { EventNote } from '../../kube/events/event-note.ts';
import { type KubeObject, Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createIds } from '../../lib/ids.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { type PanelVerdict, unavailablePanel } from '../../tempering/judge/panel.ts';
import { sessionTool } from '../../tempering/registry/registered-tool.ts';
import { anAcceptance, anArtifact, aVerdict } from '../../tempering/tempering.testing.ts';
import { addIndexes } from '../agent/observe.ts';
import { anAgent } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { TesterAnswer } from '../../tempering/examination/testers/ask-tester.ts';
import type { StoredApproval, StoredRequest } from '../approval/stored-decision.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { addToolIndexes, TOOL_INDEX } from '../tool/tool-index.ts';
import { VerifierPods } from '../verifier/verifier-pods.ts';
import { Crash } from './crash.testing.ts';
import { MemoryPromotions } from './memory-promotions.testing.ts';
import { ReviewTurns } from './panel/review-turns.ts';
import { type PromotionReconcilerDeps, PromotionReconciler } from './reconcile.ts';

const LOG = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
const TEMPLATE = { digest: 'sha256:t', labels: {}, spec: {} };
const CALLER = { agent: 'analyst', namespace: 'team-a', session: 's1', rootMessage: 'm', authorModel: 'replay/author' };

/** What outlives an operator: the API server, NATS, and the verifier pods. */
function aCluster(policy: object = {}, testers: object = {}, changes: Partial<ToolArtifact> = {}) {
  const clock = new FakeClock();
  let serial = 0;
  const ids = createIds(
    () => clock.now().getTime(),
    () => ((serial += 1) % 97) / 97,
  );
  const agents = new Store<StoredAgent>();
  const policies = new Store<StoredPolicy>();
  const tools = new Store<StoredTool>();
  const requests = new Store<StoredRequest>();
  const approvals = new Store<StoredApproval>();
  const pods = new Store<Pod>();
  const events: EventNote[] = [];
  const memory = new MemoryPromotions();
  const agent = anAgent();
  const { metadata } = agent;
  agents.set({ ...agent, spec: { ...agent.spec, trustPolicyRef: { name: 'p' } } });
  const models = { reviewers: ['replay/safety', 'replay/correctness'] };
  policies.set({
    ...agent,
    kind: 'TrustPolicy',
    metadata: { ...metadata, name: 'p', uid: 'u-p' },
    spec: { models: { ...models, ...testers }, ...policy },
  } as never);
  const tool = sessionTool(
    anAcceptance(anArtifact('double', changes)),
    { ...CALLER, namespace: metadata.namespace },
    '2026-01-01T00:00:00Z',
  );
  memory.registered = tool;
  memory.inputs = [1, 2, 3, 4, 5].map((value) => ({
    digest: tool.digest,
    root: `root-${value}`,
    input: { value },
    answers: 'none' as const,
  }));
  memory.uses = {
    totalUses: 5,
    successes: 5,
    failures: 0,
    reportedUses: 5,
    distinctInputs: 5,
    rootMessages: 5,
    agents: 1,
    averageMilliseconds: 1,
    successRate: 1,
    recent: { uses: 5, failures: 0 },
    recordedInputs: { none: 5, observed: 0, reported: 0 },
    unrecorded: {},
  };
  for (let index = 0; index < 40; index += 1) pods.set(aPod(`v-${index}`));
  addIndexes(new Cache([agents]), new Cache([new Store<Pod>()]));
  tools.addIndex(TOOL_INDEX.namespace, ({ metadata: { namespace } }) => [namespace]);
  addToolIndexes({
    tools: new Cache([new Store<StoredTool>()]),
    requests: new Cache([requests]),
    approvals: new Cache([approvals]),
  });
  const kube = fakeClient({ tools, pods, requests });
  /** What a user does: an Approval of the request. */
  const decide = ({ tool: name, digest, nonce }: Awaiting, decision: 'Approve' | 'Deny'): void => {
    const subject = { promotion: { tool: name, digest, tier: 'Agent' as const } };
    const record = { name: 'decision', createdAt: clock.now().toISOString(), decision, nonce, subject, by: 'alice' };
    approvals.set({ ...aPod('decision'), metadata: { ...metadata, name: 'decision' }, record } as never);
  };
  return {
    clock,
    ids,
    agents,
    policies,
    tools,
    requests,
    approvals,
    decide,
    pods,
    events,
    memory,
    kube,
    tool,
    agentUid: metadata.uid,
  };
}

function aPod(name: string): Pod {
  const annotations = { 'temper.dev/template-digest': TEMPLATE.digest };
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  return {
    metadata: { name, namespace: 'temper-system', uid: `uid-${name}`, resourceVersion: '1', annotations },
    status,
  };
}

interface Stores {
  tools: Store<StoredTool>;
  pods: Store<Pod>;
  requests: Store<StoredRequest>;
}
type Awaiting = Extract<PromotionRecord, { state: 'AwaitingApproval' }>;
type CreatedTool = KubeObject & { spec: { digest: string } };

function fakeClient({ tools, pods, requests }: Stores) {
  return {
    async get(_type: ResourceType, { namespace, name }: { namespace: string; name: string }) {
      return tools.get(`${namespace}/${name}`);
    },
    async create({ plural }: ResourceType, object: CreatedTool) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`;
      const store = (plural === 'approvalrequests' ? requests : tools) as unknown as Store<KubeObject>;
      if (store.get(key) !== undefined) throw new ApiError(409, 'AlreadyExists', 'exists');
      const created = { ...object, metadata: { ...object.metadata, generation: 1, resourceVersion: '1' } };
      store.set(created as unknown as KubeObject);
      return created;
    },
    async delete(_type: ResourceType, { namespace, name }: { namespace: string; name: string }) {
      requests.delete(`${namespace}/${name}`);
      return true;
    },
    async patch({ plural }: ResourceType, { namespace, name }: { namespace: string; name: string }, patch: object) {
      const store = (plural === 'pods' ? pods : tools) as Store<KubeObject>;
      const before = store.get(`${namespace}/${name}`);
      if (before === undefined) throw new ApiError(404, 'NotFound', 'gone');
      const { metadata: { labels = {} } = {}, ...rest } = patch as Partial<KubeObject>;
      const metadata = { ...before.metadata, labels: { ...before.metadata.labels, ...labels }, resourceVersion: '2' };
      const after = { ...before, ...rest, metadata };
      store.set(after);
      return after;
    },
  };
}

type Cluster = ReturnType<typeof aCluster>;

/** A new operator process over the cluster. */
function anOperator(cluster: Cluster, crash = new Crash(Number.POSITIVE_INFINITY, false)) {
  const { clock, ids, events, memory } = cluster;
  const agents = new Cache([cluster.agents]);
  const tools = new Cache([cluster.tools]);
  const pods = new Cache([cluster.pods]);
  const requests = new Cache([cluster.requests]);
  const approvals = new Cache([cluster.approvals]);
  const client = crash.wrap(cluster.kube) as unknown as KubeClient;
  const verifierPods = new VerifierPods({ client, pods, template: TEMPLATE, max: 40, onDemand: () => undefined });
  const deps: PromotionReconcilerDeps = {
    client,
    reader: client,
    withheld: undefined,
    clock,
    ids,
    agents,
    tools,
    verifierPods,
    approvals,
    requests,
    admissionAge: () => ({ since: new Date(0) }),
    audit: undefined,
    policies: new Cache([cluster.policies]),
    store: crash.wrap(memory),
    events: { record: (_subject, note) => void events.push(note), [Symbol.asyncDispose]: async () => undefined },
  };
  const reconciler = new PromotionReconciler(deps);
  const keys = new Set<string>();
  const step = async (): Promise<void> => {
    for (const key of keys) {
      const result = await reconciler.reconcile(key, { log: LOG, signal: NEVER_ABORTED });
      if (result.kind === 'failed') throw result.error;
    }
  };
  return {
    step,
    keys,
    verifierPods,
    accept: async () => {
      const { digest } = cluster.tool;
      const key = await reconciler.accept({ agentUid: cluster.agentUid, digest, session: 's1' });
      if (key !== undefined) keys.add(key);
    },
    resume: () => reconciler.resume((key) => keys.add(key), NEVER_ABORTED),
    /** Reconciles until nothing changes any more, with verifiers and a panel that respond. */
    async run(verdict: PanelVerdict = APPROVED, rounds = 30): Promise<void> {
      for (let round = 0; round < rounds; round += 1) {
        await step();
        respond(cluster, verdict);
      }
    },
  };
}

const FIGURES = {
  tests: 1,
  failedTests: 0,
  reruns: 5,
  successes: 5,
  distinctInputs: 5,
  observedAnswers: 0,
  reportedAnswers: 0,
};
/** A tool that may be random is examined without probes. */
const FEW_ROUNDS: Partial<ToolArtifact> = { requires: { apis: ['random'], domains: [], paths: [] } };
const APPROVED: PanelVerdict = {
  approved: true,
  confidence: 0.9,
  reasoning: 'sound',
  verdicts: [aVerdict({ model: 'replay/safety' }), aVerdict({ model: 'replay/correctness' })],
};

/** What verifier pods and gateways do meanwhile. */
function respond({ memory }: Cluster, verdict: PanelVerdict): void {
  for (const [uid, work] of memory.works) {
    const { attempt, round, cases } = work as unknown as VerificationWork;
    const outputs = cases.map(({ input }) => {
      const run = runOf(input);
      return [run, run];
    });
    memory.sent.set(uid, { attempt, round, outputs } as Json);
  }
  for (const { attempt } of memory.reviewRequests) memory.verdicts.set(attempt, verdict);
}

/** What the tool gives: a double, or the results of a probe with several calls. */
function runOf(input: JsonObject): JsonObject {
  const { calls, inputs } = input;
  if (!Array.isArray(calls) || !Array.isArray(inputs)) return outputOf(input);
  const results = calls.map((call) => {
    const { ok, output } = outputOf(inputs[Number((call as number[])[1])] as JsonObject);
    return { text: JSON.stringify(output ?? null), failed: ok !== true, mutated: false, work: 1 };
  });
  return { ok: true, output: { results } };
}

function outputOf({ value }: JsonObject): JsonObject {
  const result = Number(value) * 2;
  if (Number.isFinite(result)) return { ok: true, output: { result } };
  return { ok: false, code: 'TEMPER_SANDBOX_EXCEPTION', message: 'no finite result' };
}

function stateOf({ memory }: Cluster) {
  return [...memory.states.values()].map(({ record }) => record);
}

async function isKilled(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof Error && error.message === 'killed') return true;
    throw error;
  }
}

describe('the promotions of an operator', () => {
  it('an operator that is killed at any call leaves a promotion that its successor ends in one decision', async () => {
    let steps = 0;
    for (const isAfterEffect of [false, true]) {
      for (let at = 1; ; at += 1) {
        const cluster = aCluster({}, {}, FEW_ROUNDS);
        const crash = new Crash(at, isAfterEffect);
        const first = anOperator(cluster, crash);
        const killed = await isKilled(async () => {
          await first.accept();
          await first.run();
        });
        if (!killed) break;
        steps += 1;
        const next = anOperator(cluster);
        // NATS delivers a request again that was not acknowledged.
        await next.accept();
        await next.resume();
        await next.run();
        const [record, ...others] = stateOf(cluster);
        const where = `call ${at} ${isAfterEffect ? 'after' : 'before'} its effect`;
        assert.ok(record?.state === 'Promoted' && record.concluded, `${where}: ${JSON.stringify(record)}`);
        assert.equal(others.length, 0, where);
        const objects = cluster.tools.list();
        assert.deepEqual(
          objects.map((one) => [(one as unknown as CreatedTool).spec.digest, one.status?.active]),
          [[cluster.tool.digest, true]],
          where,
        );
        assert.deepEqual(
          [...cluster.memory.records.values()]
            .map(({ action }) => action)
            .filter((action) => action !== 'tool.examined'),
          ['tool.promoted'],
          where,
        );
      }
    }
    assert.ok(steps > 40, `only ${steps} calls`);
  });

  it('a later leader deletes the pods that no promotion uses, and keeps that of a verification', async () => {
    const cluster = aCluster();
    const first = anOperator(cluster);
    await first.accept();
    await first.run(APPROVED, 1);
    const [verifying] = stateOf(cluster);
    assert.ok(verifying?.state === 'Verifying');
    const next = anOperator(cluster);
    assert.equal(next.verifierPods.isInUse('another'), true, 'before the promotions are listed');
    await next.resume();
    assert.equal(next.verifierPods.isInUse(verifying.pod.uid), true);
    assert.equal(next.verifierPods.isInUse('another'), false);
  });

  it('a promotion whose pod ends starts again with another pod, and waits after three', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await operator.accept();
    const attempts = new Set<string>();
    for (let round = 0; round < 12; round += 1) {
      const [record] = stateOf(cluster);
      if (record?.state === 'Verifying') {
        attempts.add(record.attempt);
        cluster.pods.delete(`temper-system/${record.pod.name}`);
        cluster.memory.works.clear();
        cluster.memory.sent.clear();
      }
      await operator.step();
    }
    const [record] = stateOf(cluster);
    assert.ok(record?.state === 'Candidate', JSON.stringify(record));
    assert.match(record.missing.join(), /3 verifications ended without a result; the last one: pod v-\d+ was deleted/);
    assert.equal(attempts.size, 3);
    await operator.accept();
    assert.equal(stateOf(cluster)[0]?.state, 'Candidate', 'no attempt before the time');
    await cluster.clock.advance(3_600_001);
    await operator.accept();
    assert.equal(stateOf(cluster)[0]?.state, 'Requested');
  });

  it('a refusal is one decision, with an Event and the time of the next attempt', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await operator.accept();
    await operator.run({ ...unavailablePanel('x'), code: 'TEMPER_JUDGE_REFUSED', reasoning: 'leaks' });
    const [record] = stateOf(cluster);
    assert.ok(record?.state === 'Rejected' && record.concluded);
    assert.equal(Date.parse(record.notBefore) - cluster.clock.now().getTime(), 86_400_000);
    assert.deepEqual(
      cluster.events.map(({ type, reason }) => [type, reason]),
      [['Warning', 'ToolPromotionRefused']],
    );
    assert.deepEqual(cluster.tools.list(), []);
  });

  it('the panel sees numbers only, and the pod no expected output', async () => {
    const cluster = aCluster();
    const operator = anOperator(cluster);
    await operator.accept();
    await operator.run(APPROVED, 1);
    const [work] = [...cluster.memory.works.values()];
    assert.doesNotMatch(JSON.stringify(work), /expectedOutput|root-/);
    await operator.run(APPROVED, 20);
    const [review] = cluster.memory.reviewRequests;
    assert.deepEqual(review?.facts, {
      ...FIGURES,
      examinedInputs: review?.facts['examinedInputs'],
      checkCases: review?.facts['checkCases'],
      refusingDisagreements: 0,
      openQuestions: 0,
      failedGeneratedInputs: review?.facts['failedGeneratedInputs'],
      testersWithEvidence: 0,
      testersAgainst: 0,
    });
    assert.ok(Number(review?.facts['examinedInputs']) > 8);
  });

  it('a promotion that a user must approve ends in one decision, at whichever call its operator is killed', async () => {
    let steps = 0;
    for (const decision of ['Approve', 'Deny'] as const) {
      for (let at = 1; ; at += 1) {
        const cluster = aCluster({ promotion: { toAgent: { requireHuman: true } } });
        const { metadata } = cluster.agents.list()[0] ?? assert.fail();
        const { digest, artifact } = cluster.tool;
        const agent = { namespace: metadata.namespace, name: metadata.name, uid: cluster.agentUid };
        const since = cluster.clock.now().toISOString();
        const reviewed = { state: 'PanelReview', figures: FIGURES, facts: {}, questions: [] } as const;
        const subject = { agent, tool: artifact.name, digest, session: 's1', attempt: 'promotion-1', since };
        await cluster.memory.write({ ...subject, ...reviewed }, 0);
        const first = anOperator(cluster, new Crash(at, decision === 'Approve'));
        const killed = await isKilled(() => untilDecided(cluster, first, decision));
        if (!killed) break;
        steps += 1;
        const next = anOperator(cluster);
        await untilDecided(cluster, next, decision);
        const [record, ...others] = stateOf(cluster);
        const where = `${decision} at call ${at}: ${JSON.stringify(record)}`;
        assert.equal(record?.state, decision === 'Approve' ? 'Promoted' : 'Rejected', where);
        assert.ok('concluded' in record && record.concluded && others.length === 0, where);
        assert.equal(cluster.requests.list().length, 1, where);
        assert.equal(cluster.tools.list().length, decision === 'Approve' ? 1 : 0, where);
      }
    }
    assert.ok(steps > 20, `only ${steps} calls`);
  });

  it('a request for an approval is removed when the policy ends the promotion before the decision', async () => {
    const cluster = aCluster({ promotion: { toAgent: { requireHuman: true } } });
    const operator = anOperator(cluster);
    await operator.accept();
    await operator.run();
    assert.equal(stateOf(cluster)[0]?.state, 'AwaitingApproval');
    const [request] = cluster.requests.list();
    assert.deepEqual(request?.spec.subject, {
      promotion: { tool: cluster.tool.artifact.name, digest: cluster.tool.digest, tier: 'Agent' },
    });
    cluster.policies.delete('team-a/p');
    await operator.run();
    assert.equal(stateOf(cluster)[0]?.state, 'Candidate');
    assert.deepEqual(cluster.requests.list(), []);
  });

  it('two testers against a tool refuse it, and one asks a user with the cases on the request', async () => {
    const testers = ['test/first', 'test/second'];
    const answer = (model: string, factor: number): TesterAnswer => ({
      model,
      cases: [21, 22, 23].map((value) => ({ input: { value }, expected: { result: value * factor } })),
      dropped: 0,
      promptDigest: 'sha256:p',
    });
    for (const [factors, state] of [
      [[3, 3], 'Rejected'],
      [[2, 3], 'AwaitingApproval'],
      [[2, 2], 'Promoted'],
    ] as const) {
      const cluster = aCluster({}, { testers });
      const operator = anOperator(cluster);
      await operator.accept();
      await operator.run(APPROVED, 20);
      const [waiting] = stateOf(cluster);
      assert.equal(waiting?.state, 'Examining', 'waits for the testers');
      const [request] = cluster.memory.testerRequests;
      assert.equal(request?.attempt, waiting.attempt);
      const [first, second] = factors;
      cluster.memory.answers.set(waiting.attempt, [answer('test/first', first), answer('test/second', second)]);
      await operator.run(APPROVED, 10);
      const [record] = stateOf(cluster);
      assert.equal(record?.state, state, JSON.stringify(record));
      if (record.state !== 'AwaitingApproval') continue;
      assert.deepEqual(record.questions[0]?.cases[0], {
        input: '{"value":21}',
        expected: '{"result":63}',
        got: '{"result":42}',
        reason: 'the tester expects another output',
      });
    }
  });

  it('an agent whose reviewers do not answer has two panels at a time, and its namespace four', async () => {
    const turns = new ReviewTurns();
    const begin = (key: string, uid: string, namespace = 'team-a') => turns.begin(key, { uid, namespace });
    assert.deepEqual(
      [begin('1', 'u-1'), begin('2', 'u-1'), begin('3', 'u-1'), begin('1', 'u-1')],
      [true, true, false, true],
    );
    assert.deepEqual([begin('4', 'u-2'), begin('5', 'u-3'), begin('6', 'u-4')], [true, true, false]);
    assert.equal(begin('7', 'u-5', 'team-b'), true);
    turns.end('1');
    assert.equal(begin('3', 'u-1'), true);
  });
});

/** Lets the promotion run, and a user decide once the request exists. */
async function untilDecided(
  cluster: Cluster,
  operator: ReturnType<typeof anOperator>,
  decision: 'Approve' | 'Deny',
): Promise<void> {
  await operator.resume();
  await operator.run(APPROVED, 5);
  const [record] = stateOf(cluster);
  if (record?.state === 'AwaitingApproval') cluster.decide(record, decision);
  await operator.run(APPROVED, 5);
}
