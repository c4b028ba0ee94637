import { LABELS } from '../../api/cluster.ts';
import type { AgentStatus } from '../../api/v1alpha1/agent.ts';
import { messageOf } from '../../lib/errors.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Cache } from '../kube/cache.ts';
import type { OperatorConfig } from '../config.ts';
import { reasonOf } from '../conditions.ts';
import type { AdmissionPolicyMonitor } from '../admission-policies/monitor.ts';
import { type Pod, type StoredAgent, type StoredPolicy, TYPES } from '../kube/types.ts';
import type { WarmPool } from '../pool/warm-pool.ts';
import type { AgentActivity, AgentStats, TrustEvidence } from '../ports.ts';
import { evidenceOf } from '../trust/evaluate-agent.ts';
import { latestWarning, isLate } from '../pods/start-delay.ts';
import type { ScheduleReconciler } from '../schedules/reconcile.ts';
import type { ValidationCache } from './validation-cache.ts';
import { classOf, configurationProblem, programOf } from './configured-parts.ts';
import type { CrashBackoff } from '../pods/crash-backoff.ts';
import type { ObservedAgent } from './observed.ts';
import { observeTools } from '../hygiene/observe-tools.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { isOwnedBy } from '../pods/pod-ownership.ts';
import { podState } from '../pods/pod-state.ts';
import { type AgentRanks, policyKeyOf } from '../policy/agent-ranks.ts';
import type { PodTemplate, PodTemplates } from '../pods/pod-template.ts';

export interface ObserveDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly config: OperatorConfig;
  readonly templates: PodTemplates;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly pods: Cache<Pod>;
  readonly tools: Cache<StoredTool>;
  readonly ranks: AgentRanks;
  readonly validation: ValidationCache;
  readonly crashBackoff: CrashBackoff;
  readonly agentStats: AgentStats;
  readonly agentActivity: AgentActivity | undefined;
  readonly trustEvidence: TrustEvidence | undefined;
  /** Undefined without NATS. */
  readonly schedules: Pick<ScheduleReconciler, 'state' | 'schedules'> | undefined;
  readonly pool: WarmPool;
  readonly policyMonitor: AdmissionPolicyMonitor;
}

/** Names of the cache indexes. */
export const INDEX = {
  policy: 'policy',
  /** Agents that wait for a place within the quota of their policy, by policy. */
  overQuota: 'overQuota',
  /** Agents by namespace. */
  namespace: 'namespace',
  boundPod: 'boundPod',
  agent: 'agent',
  uid: 'uid',
  /** Agents by the digests that are deactivated for them, in their namespace. */
  deactivated: 'deactivated',
} as const;

export function addIndexes(agents: Cache<StoredAgent>, pods: Cache<Pod>): void {
  agents.addIndex(INDEX.policy, (agent) => [policyKeyOf(agent)]);
  agents.addIndex(INDEX.overQuota, (agent) =>
    reasonOf(agent.status?.conditions, 'Ready') === 'AgentQuotaExceeded' ? [policyKeyOf(agent)] : [],
  );
  agents.addIndex(INDEX.namespace, ({ metadata }) => [metadata.namespace]);
  agents.addIndex(INDEX.boundPod, ({ status }) => (status?.pod === undefined ? [] : [status.pod.uid]));
  agents.addIndex(INDEX.uid, ({ metadata }) => [metadata.uid]);
  agents.addIndex(INDEX.deactivated, ({ metadata, status }) =>
    (status?.deactivatedTools ?? []).map(({ digest }) => `${metadata.namespace}/${digest}`),
  );
  pods.addIndex(INDEX.agent, ({ metadata }) => {
    const uid = metadata.labels?.[LABELS.agentUid];
    return uid === undefined ? [] : [uid];
  });
}

/** One reconcile of one agent. */
export interface ObserveScope {
  /** The pod of an agent whose first status is deferred. */
  readonly deferredPod: AgentStatus['pod'];
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** All reads of a reconcile. Reads from the API server or NATS only what the caches do not contain. */
export async function observe(
  deps: ObserveDeps,
  agent: StoredAgent,
  { deferredPod, log, signal }: ObserveScope,
): Promise<ObservedAgent> {
  const { uid, namespace } = agent.metadata;
  const now = deps.clock.now();
  // The quantities of an invalid spec may not be readable.
  const specError = deps.validation.specError(agent) ?? configurationProblem(deps.config, agent.spec);
  const template = specError === undefined ? templateOf(deps, agent) : undefined;
  const policyFacts = policyFactsOf(deps, agent);
  const wanted = agent.status?.pod ?? deferredPod;
  const { bound, pods } = await podsOf(deps, agent, wanted, signal);
  const protection = await deps.policyMonitor.state(namespace, signal);
  const { pending, lastActivity } = await activityOf(deps, agent, log, signal);
  const end = bound === undefined ? undefined : podState(bound);
  if (end?.kind === 'ended') deps.crashBackoff.record(uid, bound?.metadata.uid, end.message, now);
  return {
    agent,
    now,
    ...policyFacts,
    specError,
    protection,
    hasEgress: deps.config.egress !== undefined,
    pods,
    boundUid: wanted?.uid,
    bound,
    delay: await delayReason(deps, bound, now, log, signal),
    hasBindingConflict: isSharedPod(deps, agent),
    template,
    // Must be last: no later step can throw, so the caller always gets the reserved pod and can release it.
    warmPod: bound !== undefined || template === undefined ? undefined : deps.pool.reserve(namespace, template),
    failures: deps.crashBackoff.get(uid),
    pending,
    lastActivity,
    runtimeState: deps.agentStats.get(agent, policyFacts.policy),
    taskEvidence: evidenceOf(deps.trustEvidence, agent, policyFacts.policy),
    ...schedulesOf(deps, agent),
    tools: observeTools(deps, agent, policyFacts.policyError === undefined ? policyFacts.policy : undefined, now),
    natsUnavailableSince: deps.agentActivity?.unavailableSince(),
  };
}

function schedulesOf(
  { schedules }: ObserveDeps,
  agent: StoredAgent,
): Pick<ObservedAgent, 'schedule' | 'agentSchedules'> {
  return { schedule: schedules?.state(agent), agentSchedules: schedules?.schedules(agent) };
}

type PolicyFacts = Pick<ObservedAgent, 'policy' | 'policyError' | 'grantError' | 'modelError' | 'rank'>;

function policyFactsOf(deps: ObserveDeps, agent: StoredAgent): PolicyFacts {
  const { policies, validation } = deps;
  const policy = policies.get(agent.metadata.namespace, agent.spec.trustPolicyRef.name);
  const beyond = policy === undefined ? undefined : validation.policyViolations(agent, policy);
  return {
    policy,
    policyError: policy === undefined ? undefined : validation.specError(policy),
    grantError: beyond?.grant,
    modelError: beyond?.model,
    rank: deps.ranks.rank(agent),
  };
}

function isSharedPod({ agents }: ObserveDeps, { status }: StoredAgent): boolean {
  return status?.pod !== undefined && agents.byIndex(INDEX.boundPod, status.pod.uid).length > 1;
}

function templateOf({ config, templates }: ObserveDeps, { spec }: StoredAgent): PodTemplate | undefined {
  const found = classOf(config, spec);
  return found === undefined ? undefined : templates.get(found, spec.sandbox, programOf(config, spec));
}

/** The cache may lag behind a newly bound pod, so the API server is read before the pod counts as deleted. */
async function podsOf(deps: ObserveDeps, agent: StoredAgent, wanted: AgentStatus['pod'], signal: AbortSignal) {
  const { namespace, uid } = agent.metadata;
  const labelled = deps.pods.byIndex(INDEX.agent, uid);
  const known = labelled.filter((pod) => pod.metadata.namespace === namespace && isOwnedBy(pod, agent));
  if (wanted === undefined) return { bound: undefined, pods: known };
  const cached = deps.pods.get(namespace, wanted.name);
  if (cached?.metadata.uid === wanted.uid) return { bound: cached, pods: withPod(known, cached) };
  const live = await deps.client.get<Pod>(TYPES.pods, { namespace, name: wanted.name }, signal);
  if (live?.metadata.uid === wanted.uid) return { bound: live, pods: withPod(known, live) };
  // A later pod of the agent has the name already, when the caches lag behind: it is used instead of a further one.
  const isOwn = live !== undefined && isOwnedBy(live, agent);
  return { bound: undefined, pods: isOwn ? withPod(known, live) : known };
}

/** Only for the message of a condition, so an error is only logged. */
async function delayReason(
  { client }: ObserveDeps,
  bound: Pod | undefined,
  now: Date,
  log: Logger,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (bound === undefined || !isLate(bound, now)) return undefined;
  try {
    return await latestWarning(client, bound, signal);
  } catch (error) {
    log.warn({ pod: bound.metadata.name, error: messageOf(error) }, 'the Events of a late pod cannot be read');
    return undefined;
  }
}

function withPod(pods: readonly Pod[], pod: Pod): Pod[] {
  return [...pods.filter(({ metadata }) => metadata.uid !== pod.metadata.uid), pod];
}

/** Reads NATS only for agents that are scaled to zero or may be. While NATS is unavailable, no agent is scaled to zero. */
async function activityOf(
  { agentActivity }: ObserveDeps,
  { spec, status, metadata }: StoredAgent,
  log: Logger,
  signal: AbortSignal,
): Promise<Pick<ObservedAgent, 'pending' | 'lastActivity'>> {
  const unknown = { pending: undefined, lastActivity: undefined };
  if (agentActivity === undefined || spec.idle?.scaleToZeroAfter === undefined) return unknown;
  const isStable = status?.pod !== undefined || reasonOf(status?.conditions, 'Ready') === 'Idle';
  if (!isStable) return unknown;
  try {
    // Activity first: a message that arrives between the two reads is then visible as pending.
    const lastActivity = status?.pod === undefined ? undefined : await agentActivity.lastActivity(metadata.uid, signal);
    return { lastActivity, pending: await agentActivity.pending(metadata.uid, signal) };
  } catch (error) {
    // The connection logs an outage once.
    if (agentActivity.unavailableSince() === undefined) {
      log.warn({ error: messageOf(error) }, 'the number of waiting messages cannot be read');
    }
    return unknown;
  }
}
