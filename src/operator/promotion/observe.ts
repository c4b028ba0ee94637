import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Json } from '../../lib/json.ts';
import type { UsedTool } from '../../nats/promotion/evidence.ts';
import type { PromotionKey } from '../../nats/promotion/promotion-states.ts';
import type { PromotionRecord } from '../../tempering/promotion/promotion-record.ts';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { RegisteredTool, ToolStatistics } from '../../tempering/types.ts';
import { INDEX } from '../agent/observe.ts';
import type { Cache } from '../kube/cache.ts';
import { type StoredAgent, type StoredPolicy, TYPES } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { TOOL_INDEX } from '../tool/tool-index.ts';
import type { VerifierPods } from '../verifier/verifier-pods.ts';
import { readDependencies } from './dependencies.ts';
import { observeDecision, type ObserveApprovalDeps } from './approval/observe-approval.ts';
import { type RequestObject, restoredTool } from './approval/restored-promotion.ts';
import { observeExamination } from './examination/observe-examination.ts';
import type { ExaminationProgress } from './examination/replayed-examination.ts';
import { agentDecider } from '../trust/agent-decider.ts';
import { toolsInService } from './examination/tools-in-service.ts';
import { policyGaps, toolGaps } from './gaps.ts';
import type { ObservedPromotion } from './observed.ts';
import type { PromotionStore } from './ports.ts';
import { agentToolName } from './tool-object.ts';
import { compareVerification } from './verification.ts';

export interface ObservePromotionDeps extends ObserveApprovalDeps {
  /** Reads EmergentTools with withheld sources. */
  readonly reader: Pick<KubeReader, 'get'>;
  readonly clock: Clock;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly tools: Cache<StoredTool>;
  readonly store: PromotionStore;
  readonly verifierPods: VerifierPods;
}

/** What a reconcile read: the inputs of the plan, and objects that its effects need. */
export interface PromotionSnapshot {
  readonly observed: ObservedPromotion;
  readonly agent: StoredAgent | undefined;
  /** Read in the states that need it. */
  readonly tool: RegisteredTool | undefined;
}

/** Of computing the next step of an examination. */
const EXAMINATION_MS = 60_000;

/** States whose next step reads the artifact. */
const STATES_WITH_TOOL: ReadonlySet<PromotionRecord['state']> = new Set([
  'Requested',
  'Verifying',
  'Examining',
  'PanelReview',
  'AwaitingApproval',
  'Promoted',
]);
/** States in which a decision is ahead. */
const UNDECIDED: ReadonlySet<PromotionRecord['state']> = new Set([
  'Requested',
  'Verifying',
  'Examining',
  'PanelReview',
  'AwaitingApproval',
]);

/** All reads of the next step of a promotion. Throws TEMPER_BUS_* and ApiError. */
export async function observePromotion(
  deps: ObservePromotionDeps,
  record: PromotionRecord,
  signal: AbortSignal,
): Promise<PromotionSnapshot> {
  const [agent] = deps.agents.byIndex(INDEX.uid, record.agent.uid);
  const policy = agent && deps.policies.get(agent.metadata.namespace, agent.spec.trustPolicyRef.name);
  // At once: each read is an exchange with NATS, and none depends on another.
  const [tools, base, sent, review, statistics] = await Promise.all([
    STATES_WITH_TOOL.has(record.state) ? toolsOf(deps, record, signal) : [],
    observeBase(deps, record, { agent, policy }),
    sentOutputs(deps.store, record),
    record.state === 'PanelReview' ? deps.store.review(promotionKeyOf(record), record.attempt) : undefined,
    record.state === 'Requested' ? deps.store.statistics(record.agent.uid, usedToolOf(record)) : undefined,
  ]);
  const tool = tools.find(({ digest }) => digest === record.digest);
  switch (record.state) {
    case 'Requested': {
      const found = await observeRequested(deps, { record, agent, policy, tool, statistics }, signal);
      return { agent, tool, observed: { ...base, record, ...found } };
    }
    case 'Verifying': {
      const isComparable = sent !== undefined && tool !== undefined;
      const verified = { attempt: record.attempt, recorded: record.recorded };
      const result = isComparable ? compareVerification({ ...verified, tool }, sent) : undefined;
      return { agent, tool, observed: { ...base, record, result, podProblem: podProblemOf(deps, record, tool) } };
    }
    case 'Examining': {
      const found = await observeExamining(deps, { record, policy, tool, tools, sent }, signal);
      const podProblem = podProblemOf(deps, record, tool);
      return {
        agent,
        tool,
        observed: { ...base, record, ...found, podProblem, sourceWithheld: tool?.sourceWithheld === true },
      };
    }
    case 'AwaitingApproval': {
      const decision = observeDecision(deps, record);
      return { agent, tool, observed: { ...base, record, ...decision, toolExists: tool !== undefined } };
    }
    case 'PanelReview':
      return { agent, tool, observed: { ...base, record, review, sourceWithheld: tool?.sourceWithheld === true } };
    default:
      return { agent, tool, observed: { ...base, record } };
  }
}

/** What the pod sent for its last round. */
async function sentOutputs(store: PromotionStore, record: PromotionRecord): Promise<Json | undefined> {
  if (record.state === 'Verifying') return store.outputs(record.pod.uid, 0);
  return record.state === 'Examining' ? store.outputs(record.pod.uid, record.rounds.length) : undefined;
}

function promotionKeyOf({ agent, digest }: PromotionRecord): PromotionKey {
  return { agentUid: agent.uid, digest };
}

function usedToolOf({ agent, digest }: PromotionRecord): UsedTool {
  return { digest, namespace: agent.namespace };
}

/** The tools of its session, or what its request has of them. */
async function toolsOf(
  { reader, store }: ObservePromotionDeps,
  { agent, session, restored }: PromotionRecord,
  signal: AbortSignal,
): Promise<RegisteredTool[]> {
  if (restored === undefined) return store.sessionTools(agent.uid, session);
  const ref = { namespace: agent.namespace, name: restored.request };
  const request = await reader.get<RequestObject>(TYPES.approvalRequests, ref, signal);
  const tool = request === undefined ? undefined : restoredTool(request);
  return tool === undefined ? [] : [tool];
}

function podProblemOf(
  { verifierPods }: ObservePromotionDeps,
  { pod }: { pod: { name: string; uid: string } },
  tool: RegisteredTool | undefined,
): string | undefined {
  return tool === undefined ? 'its session was closed or no longer has it' : verifierPods.problemOf(pod);
}

async function observeExamining(
  { reader, clock, store, tools }: ObservePromotionDeps,
  found: {
    record: Extract<PromotionRecord, { state: 'Examining' }>;
    policy: StoredPolicy | undefined;
    tool: RegisteredTool | undefined;
    tools: readonly RegisteredTool[];
    sent: Json | undefined;
  },
  signal: AbortSignal,
) {
  const { record, policy, tool, tools: ofSession, sent } = found;
  const testers = policy?.spec.models?.testers ?? [];
  const nothing = { progress: undefined, testers, toolGaps: [], dependencies: new Map() };
  if (tool === undefined) return nothing;
  const op = { signal, deadline: clock.monotonic() + EXAMINATION_MS, key: record.attempt };
  const inService = () => toolsInService({ client: reader, tools, store }, record.agent, tool, signal);
  const examined = { record, tool, ofSession, testers, inService, sent };
  const progress = await observeExamination(store, examined, op);
  if (progress?.kind !== 'round') return { ...nothing, progress };
  const { artifact } = progress.run;
  const { missing, artifacts } = await readDependencies(reader, record.agent, artifact, signal);
  const isOther = artifact.name !== tool.artifact.name;
  if (isOther && missing.length > 0) return { ...nothing, progress: changedMeanwhile(artifact.name) };
  return { progress, testers, toolGaps: missing, dependencies: artifacts };
}

/** A tool in service whose steps left service says nothing about the examined tool. */
function changedMeanwhile(name: string): ExaminationProgress {
  return { kind: 'unusable', problem: `a tool that "${name}" calls left service during the examination` };
}

async function observeBase(
  { store, clock }: ObservePromotionDeps,
  record: PromotionRecord,
  { agent, policy }: { agent: StoredAgent | undefined; policy: StoredPolicy | undefined },
) {
  const isUndecided = agent !== undefined && UNDECIDED.has(record.state);
  const tainted = isUndecided && (await isTainted(store, record));
  return {
    now: clock.now(),
    agentExists: agent !== undefined && agent.metadata.deletionTimestamp === undefined,
    rules: promotionRules(policy?.spec ?? {}),
    tainted,
    policyGaps: isUndecided ? policyGaps(agent, policy, { name: record.tool, tainted }) : [],
  };
}

async function isTainted(store: PromotionStore, { agent, session, restored }: PromotionRecord): Promise<boolean> {
  return restored === undefined ? store.isTainted(agent.uid, session) : restored.tainted;
}

async function observeRequested(
  deps: ObservePromotionDeps,
  found: {
    record: PromotionRecord;
    agent: StoredAgent | undefined;
    policy: StoredPolicy | undefined;
    tool: RegisteredTool | undefined;
    statistics: ToolStatistics | undefined;
  },
  signal: AbortSignal,
) {
  const { record, agent, policy, tool, statistics } = found;
  const nothing = { toolExists: tool !== undefined, promoted: false, toolGaps: [], dependencies: new Map() };
  if (agent === undefined || policy === undefined || tool === undefined || statistics === undefined) return nothing;
  const { namespace } = agent.metadata;
  const inNamespace = deps.tools.byIndex(TOOL_INDEX.namespace, namespace);
  const { agentTools } = agentDecider(agent, policy, false).forgeLimits;
  const dependencies = await readDependencies(deps.reader, record.agent, tool.artifact, signal);
  const object = agentToolName(record.agent, tool.artifact.name, record.digest);
  return {
    ...nothing,
    promoted: deps.tools.get(namespace, object)?.status?.active === true,
    toolGaps: [...toolGaps({ tool, statistics }, policy, { inNamespace, agent, agentTools }), ...dependencies.missing],
    dependencies: dependencies.artifacts,
  };
}
