import assert from 'node:assert/strict';
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
import { AUDIT_HEAD } from '../../review/reviews.testing.ts';
import type { PanelVerdict } from '../../tempering/judge/panel.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { sessionTool } from '../../tempering/registry/registered-tool.ts';
import { anAcceptance, anArtifact, aVerdict } from '../../tempering/tempering.testing.ts';
import { addIndexes } from '../agent/observe.ts';
import { anAgent } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import type { StoredApproval, StoredRequest } from '../approval/stored-decision.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { addToolIndexes, TOOL_INDEX } from '../tool/tool-index.ts';
import { VerifierPods } from '../verifier/verifier-pods.ts';
import { Crash } from './crash.testing.ts';
import { MemoryPromotions } from './memory-promotions.testing.ts';
import { type PromotionReconcilerDeps, PromotionReconciler } from './reconcile.ts';

const { signal: NEVER_ABORTED } = new AbortController();
const LOG = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
const TEMPLATE = { digest: 'sha256:t', labels: {}, spec: {} };
const CREATED_AT = '2026-01-01T00:00:00Z';
const CALLER = { agent: 'analyst', namespace: 'team-a', session: 's1', rootMessage: 'm', authorModel: 'replay/author' };

/** NATS with a session tool, and its uses of five root messages. */
function aMemory(tool: RegisteredTool): MemoryPromotions {
  const memory = new MemoryPromotions();
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
    sessions: 3,
    averageMilliseconds: 1,
    successRate: 1,
    recent: { uses: 5, failures: 0 },
    recordedInputs: { none: 5, observed: 0, reported: 0 },
    unrecorded: {},
  };
  return memory;
}

function aPolicy(agent: StoredAgent, spec: object, testers: object): StoredPolicy {
  const models = { reviewers: ['replay/safety', 'replay/correctness'], ...testers };
  const metadata = { ...agent.metadata, name: 'p', uid: 'u-p' };
  return { ...agent, kind: 'TrustPolicy', metadata, spec: { models, ...spec } } as never;
}

/** What outlives an operator: the API server, NATS, and the verifier pods. */
export function aCluster(policy: object = {}, testers: object = {}, changes: Partial<ToolArtifact> = {}) {
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
  const agent = anAgent();
  const { metadata } = agent;
  agents.set({ ...agent, spec: { ...agent.spec, trustPolicyRef: { name: 'p' } } });
  policies.set(aPolicy(agent, policy, testers));
  const tool = sessionTool(
    anAcceptance(anArtifact('double', changes)),
    { ...CALLER, namespace: metadata.namespace },
    '2026-01-01T00:00:00Z',
  );
  const memory = aMemory(tool);
  for (let index = 0; index < 40; index += 1) pods.set(aPod(`v-${index}`));
  addIndexes(new Cache([agents]), new Cache([new Store<Pod>()]));
  tools.addIndex(TOOL_INDEX.namespace, ({ metadata: { namespace } }) => [namespace]);
  addToolIndexes({
    tools: new Cache([new Store<StoredTool>()]),
    requests: new Cache([requests]),
    approvals: new Cache([approvals]),
  });
  const kube = fakeClient({ tools, pods, requests });
  return {
    clock,
    ids,
    agents,
    policies,
    tools,
    requests,
    approvals,
    decide: decider(approvals, clock),
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

/** What a user does: an Approval of the request. */
function decider(approvals: Store<StoredApproval>, clock: FakeClock) {
  return ({ agent, tool, digest, nonce }: Awaiting, decision: 'Approve' | 'Deny'): void => {
    const subject = { promotion: { tool, digest, tier: 'Agent' as const } };
    const record = { name: 'decision', createdAt: clock.now().toISOString(), decision, nonce, subject, by: 'alice' };
    const metadata = { ...aPod('decision').metadata, namespace: agent.namespace };
    approvals.set({ metadata, record } as never);
  };
}

interface Stores {
  tools: Store<StoredTool>;
  pods: Store<Pod>;
  requests: Store<StoredRequest>;
}
type Awaiting = Extract<PromotionRecord, { state: 'AwaitingApproval' }>;
export type CreatedTool = KubeObject & { spec: { digest: string } };

function fakeClient({ tools, pods, requests }: Stores) {
  return {
    async get({ plural }: ResourceType, { namespace, name }: { namespace: string; name: string }) {
      return (plural === 'approvalrequests' ? requests : tools).get(`${namespace}/${name}`);
    },
    async create({ plural }: ResourceType, object: CreatedTool) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`;
      const store = (plural === 'approvalrequests' ? requests : tools) as unknown as Store<KubeObject>;
      if (store.get(key) !== undefined) throw new ApiError(409, 'AlreadyExists', 'exists');
      const stored = {
        generation: 1,
        resourceVersion: '1',
        uid: `uid-${object.metadata.name}`,
        creationTimestamp: CREATED_AT,
      };
      const created = { ...object, metadata: { ...object.metadata, ...stored } };
      store.set(created as unknown as KubeObject);
      return created;
    },
    async delete(_type: ResourceType, { namespace, name }: { namespace: string; name: string }) {
      requests.delete(`${namespace}/${name}`);
      return true;
    },
    async patch({ plural }: ResourceType, { namespace, name }: { namespace: string; name: string }, patch: object) {
      const stores = { pods, approvalrequests: requests } as unknown as Record<string, Store<KubeObject>>;
      const store = stores[plural] ?? (tools as unknown as Store<KubeObject>);
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

export type Cluster = ReturnType<typeof aCluster>;

/** A new operator process over the cluster. */
export function anOperator(cluster: Cluster, crash = new Crash(Number.POSITIVE_INFINITY, false)) {
  const { clock, ids, events, memory } = cluster;
  const agents = new Cache([cluster.agents]);
  const tools = new Cache([cluster.tools]);
  const pods = new Cache([cluster.pods]);
  const requests = new Cache([cluster.requests]);
  const approvals = new Cache([cluster.approvals]);
  const client = crash.wrap(cluster.kube) as unknown as KubeClient;
  const verifierPods = new VerifierPods({ client, pods, template: TEMPLATE, max: 40, onDemand: () => undefined });
  const deps: PromotionReconcilerDeps = {
    auditHead: async () => AUDIT_HEAD,
    client,
    reader: client,
    withheld: undefined,
    reportedTools: { add: async () => undefined, remove: async () => undefined },
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
    events: {
      record: (_subject, note) => void events.push(note),
      written: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    },
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
      const key = await reconciler.accept({ agentUid: cluster.agentUid, digest, session: 's1' }, NEVER_ABORTED);
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

export const FIGURES = {
  tests: 1,
  failedTests: 0,
  reruns: 5,
  successes: 5,
  distinctInputs: 5,
  observedAnswers: 0,
  reportedAnswers: 0,
};
/** A tool that may be random is examined without probes. */
export const FEW_ROUNDS: Partial<ToolArtifact> = { requires: { apis: ['random'], domains: [], paths: [] } };
export const APPROVED: PanelVerdict = {
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

export function stateOf({ memory }: Cluster) {
  return [...memory.states.values()].map(({ record }) => record);
}

export async function isKilled(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof Error && error.message === 'killed') return true;
    throw error;
  }
}

/** The state of a promotion whose panel is asked. */
export function aReviewed({ agents, agentUid, clock, tool }: Cluster): PromotionRecord {
  const [{ metadata } = assert.fail()] = agents.list();
  const agent = { namespace: metadata.namespace, name: metadata.name, uid: agentUid };
  const subject = { agent, tool: tool.artifact.name, digest: tool.digest, session: 's1', attempt: 'promotion-1' };
  const stage = { state: 'PanelReview', figures: FIGURES, facts: {}, questions: [] } as const;
  return { ...subject, since: clock.now().toISOString(), ...stage };
}

/** Lets the promotion run, and a user decide once the request exists. */
export async function untilDecided(
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
