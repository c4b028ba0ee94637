import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { VerificationWork } from '../../gateway-api/verification/verification-schemas.ts';
import { ApiError, type KubeClient, type ResourceType } from '../../kube/client/kube-client.ts';
import type { EventNote } from '../../kube/events/event-note.ts';
import { type KubeObject, Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createIds } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { type PanelVerdict, unavailablePanel } from '../../tempering/judge/panel.ts';
import { sessionTool } from '../../tempering/registry/registered-tool.ts';
import { anAcceptance, aVerdict } from '../../tempering/tempering.testing.ts';
import { addIndexes } from '../agent/observe.ts';
import { anAgent } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { TOOL_INDEX } from '../tool/tool-index.ts';
import { VerifierPods } from '../verifier/verifier-pods.ts';
import { Crash } from './crash.testing.ts';
import { MemoryPromotions } from './memory-promotions.testing.ts';
import { type PromotionReconcilerDeps, PromotionReconciler } from './reconcile.ts';

const LOG = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
const TEMPLATE = { digest: 'sha256:t', labels: {}, spec: {} };
const CALLER = { agent: 'analyst', namespace: 'team-a', session: 's1', rootMessage: 'm', authorModel: 'replay/author' };

/** What outlives an operator: the API server, NATS, and the verifier pods. */
function aCluster() {
  const clock = new FakeClock();
  let serial = 0;
  const ids = createIds(
    () => clock.now().getTime(),
    () => ((serial += 1) % 97) / 97,
  );
  const agents = new Store<StoredAgent>();
  const policies = new Store<StoredPolicy>();
  const tools = new Store<StoredTool>();
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
    spec: { models },
  } as never);
  const tool = sessionTool(anAcceptance(), { ...CALLER, namespace: metadata.namespace }, '2026-01-01T00:00:00Z');
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
  const kube = fakeClient(tools, pods);
  return { clock, ids, agents, policies, tools, pods, events, memory, kube, tool, agentUid: metadata.uid };
}

function aPod(name: string): Pod {
  const annotations = { 'temper.dev/template-digest': TEMPLATE.digest };
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  return {
    metadata: { name, namespace: 'temper-system', uid: `uid-${name}`, resourceVersion: '1', annotations },
    status,
  };
}

type CreatedTool = KubeObject & { spec: { digest: string } };

function fakeClient(tools: Store<StoredTool>, pods: Store<Pod>) {
  return {
    async get(_type: ResourceType, { namespace, name }: { namespace: string; name: string }) {
      return tools.get(`${namespace}/${name}`);
    },
    async create(_type: ResourceType, object: CreatedTool) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`;
      if (tools.get(key) !== undefined) throw new ApiError(409, 'AlreadyExists', 'exists');
      const created = { ...object, metadata: { ...object.metadata, generation: 1, resourceVersion: '1' } };
      tools.set(created as unknown as StoredTool);
      return created;
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
  const client = crash.wrap(cluster.kube) as unknown as KubeClient;
  const verifierPods = new VerifierPods({ client, pods, template: TEMPLATE, max: 40, onDemand: () => undefined });
  const deps: PromotionReconcilerDeps = {
    client,
    clock,
    ids,
    agents,
    tools,
    verifierPods,
    examinations: [],
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

const APPROVED: PanelVerdict = {
  approved: true,
  confidence: 0.9,
  reasoning: 'sound',
  verdicts: [aVerdict({ model: 'replay/safety' }), aVerdict({ model: 'replay/correctness' })],
};

/** What verifier pods and gateways do meanwhile. */
function respond({ memory }: Cluster, verdict: PanelVerdict): void {
  for (const [uid, work] of memory.works) {
    const { attempt, cases } = work as unknown as VerificationWork;
    const outputs = cases.map(({ input }) => {
      const run = { ok: true, output: { result: Number(input['value']) * 2 } };
      return [run, run];
    });
    memory.sent.set(uid, { attempt, outputs } as Json);
  }
  for (const { attempt } of memory.reviewRequests) memory.verdicts.set(attempt, verdict);
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
        const cluster = aCluster();
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
          [...cluster.memory.records.values()].map(({ action }) => action),
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
    await operator.run(APPROVED, 2);
    const [review] = cluster.memory.reviewRequests;
    assert.deepEqual(review?.facts, {
      tests: 1,
      failedTests: 0,
      reruns: 5,
      successes: 5,
      distinctInputs: 5,
      observedAnswers: 0,
      reportedAnswers: 0,
    });
  });
});
