import type { ChildRequestSource } from './children/child-requests.ts';
import type { KubeClient, KubeReader, ResourceType } from '../kube/client/kube-client.ts';
import type { Transport } from '../kube/client/transport.ts';
import { createRateLimiter } from '../kube/controller/rate-limiter.ts';
import type { RankOf } from '../kube/controller/priority-fifo.ts';
import { WorkQueue, type WorkQueueOptions } from '../kube/controller/work-queue.ts';
import { agentRank } from './agent/work-order.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import type { Metrics } from '../kube/metrics.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { Logger } from '../telemetry/log.ts';
import type { OperatorMetrics } from '../telemetry/temper-metrics.ts';
import { installedPoliciesVersion } from './admission-policies/installed-policies.ts';
import { AdmissionPolicyMonitor } from './admission-policies/monitor.ts';
import { addIndexes } from './agent/observe.ts';
import { ValidationCache } from './agent/validation-cache.ts';
import type { OperatorConfig } from './config.ts';
import { OperatorIdentity } from './approval/operator-identity.ts';
import { GitStates } from './approval/git-states.ts';
import type { StoredApproval, StoredRequest } from './approval/stored-decision.ts';
import { type AllQueues, VERIFIERS_KEY } from './event-routes.ts';
import type { Cache } from './kube/cache.ts';
import { type Informers, createInformers } from './kube/informers.ts';
import type { PlainObject, Pod, StoredAgent, StoredPolicy } from './kube/types.ts';
import type { PrerequisiteOptions } from './namespace/objects.ts';
import { NamespaceObjects } from './namespace/prepare.ts';
import { SourceKeyring } from '../nats/sources/source-cipher.ts';
import type { AuditStream } from '../nats/audit-stream.ts';
import { ReleasePki } from './pki/release-pki.ts';
import { TargetAuthorities } from './pki/target-authorities.ts';
import { CrashBackoff } from './pods/crash-backoff.ts';
import { QuotaReleases } from './pods/quota-releases.ts';
import { StartTimes } from './pods/start-times.ts';
import type { HasPool } from './pods/pod-metrics.ts';
import { PodTemplates } from './pods/pod-template.ts';
import { AgentRanks } from './policy/agent-ranks.ts';
import { isPooled, poolSize } from './pool/reconcile.ts';
import { WarmPool } from './pool/warm-pool.ts';
import type { PromotionStore } from './promotion/ports.ts';
import { PromotionReconciler } from './promotion/reconcile.ts';
import { newestHeadOf } from './provenance/newest-head.ts';
import type { ReadAuditHead } from './sharing/create-request.ts';
import { ReportedTools } from './sharing/reported-tools.ts';
import { ToolAudits } from './tool-audits/tool-audits.ts';
import { ToolReruns } from './reruns/tool-reruns.ts';
import { verifierTemplate } from './verifier/pod-template.ts';
import { DEFAULT_MAX_VERIFIERS, VerifierPool } from './verifier/reconcile.ts';
import { VerifierPods } from './verifier/verifier-pods.ts';
import {
  type AgentActivity,
  type AgentStats,
  NO_AGENT_STATS,
  type PullRequestReader,
  type OperatorAudit,
  type PendingCallSource,
  type SpendReader,
  type TrustEvidence,
} from './ports.ts';
import { type AdmissionAge, admissionAge } from './tool/admission-age.ts';
import type { StoredTool } from './tool/stored-tool.ts';
import { BY_NAMESPACE } from './capabilities/reconcile.ts';
import type { StoredCapability } from './capabilities/stored-capability.ts';
import type { ScheduleStore } from './schedules/ports.ts';
import { ScheduleReconciler } from './schedules/reconcile.ts';
import type { PlatformEventStore } from './platform-events/ports.ts';
import { addListenerIndex } from './platform-events/listeners.ts';
import { PlatformEventReconciler } from './platform-events/reconcile.ts';
import type { WithheldStore } from './withheld/ports.ts';
import { readerWithSources } from './withheld/tool-reader.ts';
import { addToolIndexes } from './tool/tool-index.ts';

export interface OperatorDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Metrics of agents, pods and API writes. */
  readonly operatorMetrics?: OperatorMetrics;
  /** Unique per process. Holder identity of the Lease and reporting instance of Events. */
  readonly identity: string;
  readonly agentActivity?: AgentActivity;
  readonly agentStats?: AgentStats;
  readonly spend?: SpendReader;
  readonly pendingCalls?: PendingCallSource;
  readonly childRequests?: ChildRequestSource;
  readonly pullRequests?: PullRequestReader;
  readonly trustEvidence?: TrustEvidence;
  /** Absent: no provenance chain. */
  readonly auditStream?: AuditStream;
  readonly promotions?: PromotionStore;
  readonly audit?: OperatorAudit;
  readonly sourceKeys?: SourceKeyring;
  /** The encrypted store of withheld sources. */
  readonly withheld?: WithheldStore;
  readonly scheduleStore?: ScheduleStore;
  readonly platformEventStore?: PlatformEventStore;
  /** Leader election timing in milliseconds, for tests. */
  readonly election?: { leaseDurationMs: number; renewDeadlineMs: number; retryPeriodMs: number };
}

/** What the reconcilers, event routes, leader tasks and metrics of one operator process share. */
export interface Components {
  readonly config: OperatorConfig;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly log: Logger;
  readonly operatorMetrics: OperatorMetrics | undefined;
  readonly isLeader: () => boolean;
  readonly starts: StartTimes;
  readonly hasPool: HasPool;
  /** Writes only while this process is the leader. */
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly informers: Informers;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly pods: Cache<Pod>;
  readonly ranks: AgentRanks;
  readonly quotaReleases: QuotaReleases;
  readonly tools: Cache<StoredTool>;
  readonly capabilities: Cache<StoredCapability>;
  readonly approvals: Cache<StoredApproval>;
  readonly requests: Cache<StoredRequest>;
  /** From when on Approvals count. */
  readonly admissionAge: () => AdmissionAge;
  readonly identity: OperatorIdentity;
  readonly queues: AllQueues;
  readonly pool: WarmPool;
  readonly pki: ReleasePki;
  readonly policyMonitor: AdmissionPolicyMonitor;
  readonly namespaces: NamespaceObjects;
  readonly templates: PodTemplates;
  readonly validation: ValidationCache;
  readonly crashBackoff: CrashBackoff;
  /** Undefined without NATS. */
  readonly agentActivity: AgentActivity | undefined;
  readonly agentStats: AgentStats;
  readonly spend: SpendReader | undefined;
  /** Undefined without NATS. */
  readonly pendingCalls: PendingCallSource | undefined;
  readonly childRequests: ChildRequestSource | undefined;
  readonly pullRequests: PullRequestReader | undefined;
  readonly requestsInGit: GitStates;
  readonly revocationsInGit: GitStates;
  /** Undefined without NATS: levels then change by edits only. */
  readonly trustEvidence: TrustEvidence | undefined;
  /** Undefined without NATS or without verifiers: no tool is promoted. */
  readonly promotions: PromotionReconciler | undefined;
  readonly promotionStore: PromotionStore | undefined;
  /** Undefined when `promotions` is. */
  readonly reruns: ToolReruns | undefined;
  readonly toolAudits: ToolAudits | undefined;
  readonly verifierPods: VerifierPods;
  readonly verifierPool: VerifierPool;
  readonly audit: OperatorAudit | undefined;
  readonly sourceKeys: SourceKeyring;
  /** Undefined without NATS. */
  readonly withheld: WithheldStore | undefined;
  /** Undefined without NATS: no schedule runs. */
  readonly schedules: ScheduleReconciler | undefined;
  readonly scheduleStore: ScheduleStore | undefined;
  /** Undefined without NATS. */
  readonly platformEvents: PlatformEventReconciler | undefined;
  /** Reads EmergentTools with withheld sources. */
  readonly reader: Pick<KubeReader, 'get'>;
  readonly auditHead: ReadAuditHead;
  readonly reportedTools: ReportedTools;
}

export function createComponents(
  config: OperatorConfig,
  deps: OperatorDeps,
  client: KubeClient,
  events: EventRecorder,
  isLeader: () => boolean,
): Components {
  const { clock, ids, log, operatorMetrics } = deps;
  const informers = createInformers(deps, config);
  const { cache: agents } = informers.agents;
  const { cache: policies } = informers.policies;
  const { cache: pods } = informers.pods;
  addIndexes(agents, pods);
  const ranks = new AgentRanks();
  informers.agents.subscribe((change) => ranks.onChange(change));
  const validation = new ValidationCache();
  const templates = new PodTemplates(config);
  const { sourceKeys = new SourceKeyring(), withheld } = deps;
  const reader = readerWithSources(client, withheld);
  const pki = new ReleasePki({ client, clock, config, sourceKeys, ...targetAuthoritiesOf(config, log) });
  const queues = createQueues(deps, (key) => agentRank(agents, policies, key));
  const promotions = createPromotions(config, deps, { client, reader, informers, pki, queues, events });
  const namespaces = createNamespaceObjects(client, informers, { config, pki, policies, validation });
  return {
    config,
    clock,
    ids,
    log,
    operatorMetrics,
    isLeader,
    hasPool: (namespace, template) => isPooled(config, templates, namespace, template),
    client,
    reader,
    sourceKeys,
    withheld,
    events,
    informers,
    agents,
    policies,
    pods,
    ...toolComponents(informers, config, client),
    ranks,
    quotaReleases: new QuotaReleases(pods, clock),
    queues,
    pool: new WarmPool(pods),
    pki,
    policyMonitor: createPolicyMonitor(config, client, clock, informers),
    namespaces,
    templates,
    validation,
    crashBackoff: new CrashBackoff(),
    ...portsOf(deps),
    auditHead: newestHeadOf(client, config.namespace),
    ...schedulesOf(deps, { agents, policies, validation, queues }),
    platformEvents: platformEventsOf(deps, config, { informers, queues }),
    requestsInGit: new GitStates('Request'),
    revocationsInGit: new GitStates('Revocation'),
    ...promotions,
  };
}

function targetAuthoritiesOf({ egress }: OperatorConfig, log: Logger): { targetAuthorities?: TargetAuthorities } {
  return egress?.caFile === undefined ? {} : { targetAuthorities: new TargetAuthorities(egress.caFile, log) };
}

type ScheduleParts = Pick<Components, 'agents' | 'policies' | 'validation' | 'queues'>;

function schedulesOf(
  { clock, operatorMetrics: metrics, scheduleStore: store }: OperatorDeps,
  parts: ScheduleParts,
): Pick<Components, 'starts' | 'schedules' | 'scheduleStore'> {
  const starts = new StartTimes(clock, metrics);
  if (store === undefined) return { starts, schedules: undefined, scheduleStore: undefined };
  return {
    starts,
    schedules: new ScheduleReconciler({ ...parts, clock, metrics, starts, store }),
    scheduleStore: store,
  };
}

function platformEventsOf(
  { clock, platformEventStore: store }: OperatorDeps,
  { namespaces }: OperatorConfig,
  { informers, queues }: Pick<Components, 'informers' | 'queues'>,
): PlatformEventReconciler | undefined {
  if (store === undefined) return undefined;
  const caches = {
    agents: informers.agents.cache,
    tools: informers.tools.cache,
    requests: informers.requests.cache,
  };
  addListenerIndex(caches.agents);
  return new PlatformEventReconciler({ ...caches, store, clock, queue: queues.platformEvents, namespaces });
}

/** What the controllers of tools and of decisions about them share. */
function toolComponents(
  informers: Informers,
  config: OperatorConfig,
  client: KubeClient,
): Pick<Components, 'tools' | 'capabilities' | 'approvals' | 'requests' | 'admissionAge' | 'identity'> {
  const caches = {
    tools: informers.tools.cache,
    approvals: informers.approvals.cache,
    requests: informers.requests.cache,
  };
  addToolIndexes(caches);
  return {
    ...caches,
    capabilities: indexedCapabilities(informers),
    admissionAge: admissionAgeOf(config, informers),
    identity: new OperatorIdentity(client),
  };
}

function indexedCapabilities({ capabilities: { cache } }: Informers): Cache<StoredCapability> {
  cache.addIndex(BY_NAMESPACE, ({ metadata }) => [metadata.namespace]);
  return cache;
}

type Ports =
  | 'agentActivity'
  | 'agentStats'
  | 'spend'
  | 'audit'
  | 'pendingCalls'
  | 'childRequests'
  | 'pullRequests'
  | 'trustEvidence';

function portsOf({
  agentActivity,
  agentStats = NO_AGENT_STATS,
  spend,
  audit,
  pendingCalls,
  childRequests,
  pullRequests,
  trustEvidence,
}: OperatorDeps): Pick<Components, Ports> {
  return { agentActivity, agentStats, spend, audit, pendingCalls, childRequests, pullRequests, trustEvidence };
}

function createNamespaceObjects(
  client: KubeClient,
  informers: Informers,
  parts: Pick<Components, 'config' | 'pki' | 'policies' | 'validation'>,
): NamespaceObjects {
  return new NamespaceObjects({
    client,
    cached: (type, namespace, name) => cachedChild(informers, type, namespace, name),
    options: (namespace) => prerequisiteOptions(namespace, parts),
  });
}

/** Computed once per version of the policies, because every reconcile of a tool asks. */
function admissionAgeOf(
  { admissionPolicies }: OperatorConfig,
  { admissionPolicies: policies, admissionBindings: bindings }: Informers,
): () => AdmissionAge {
  let known: { version: string; age: AdmissionAge } | undefined;
  return () => {
    const installed = { policies: policies.cache.list(), bindings: bindings.cache.list() };
    const version = installedPoliciesVersion(installed);
    if (known?.version !== version) known = { version, age: admissionAge(installed, admissionPolicies?.policies) };
    return known.age;
  };
}

function createQueues(deps: OperatorDeps, rankOf: RankOf): AllQueues {
  const queue = (name: keyof AllQueues, ranks?: Pick<WorkQueueOptions, 'rankOf'>) =>
    new WorkQueue({ ...deps, ...ranks, name, limiter: createRateLimiter(deps.clock) });
  return {
    agents: queue('agents', { rankOf }),
    policies: queue('policies'),
    pools: queue('pools'),
    namespaces: queue('namespaces'),
    promotions: queue('promotions'),
    verifiers: queue('verifiers'),
    tools: queue('tools'),
    requests: queue('requests'),
    approvals: queue('approvals'),
    schedules: queue('schedules', { rankOf }),
    capabilities: queue('capabilities'),
    platformEvents: queue('platformEvents'),
  };
}

function createPromotions(
  config: OperatorConfig,
  deps: OperatorDeps,
  parts: Pick<Components, 'client' | 'reader' | 'informers' | 'pki' | 'queues' | 'events'>,
): Pick<
  Components,
  'verifierPods' | 'verifierPool' | 'promotions' | 'promotionStore' | 'reruns' | 'reportedTools' | 'toolAudits'
> {
  const { clock, ids } = deps;
  const { client, reader, informers, pki, queues, events } = parts;
  const tools = informers.tools.cache;
  const reportedTools = new ReportedTools(client, clock, config.namespace);
  const template = verifierTemplate(config);
  const verifierPods = new VerifierPods({
    client,
    pods: informers.verifiers.cache,
    template,
    max: config.verifier?.max ?? DEFAULT_MAX_VERIFIERS,
    onDemand: () => queues.verifiers.add(VERIFIERS_KEY),
  });
  const endpoints = () => pki.endpoints;
  const verifierPool = new VerifierPool({ client, config, template, verifierPods, ids, endpoints });
  const store = template === undefined ? undefined : deps.promotions;
  const none = { promotions: undefined, promotionStore: undefined, reruns: undefined, toolAudits: undefined };
  if (store === undefined) return { verifierPods, verifierPool, reportedTools, ...none };
  const { cache: agents } = informers.agents;
  const { cache: policies } = informers.policies;
  const metrics = deps.operatorMetrics;
  const { withheld } = deps;
  const shared = {
    client,
    reader,
    withheld,
    reportedTools,
    clock,
    ids,
    agents,
    policies,
    events,
    tools,
    store,
    verifierPods,
    metrics,
  };
  const approvals = { approvals: informers.approvals.cache, requests: informers.requests.cache };
  const age = admissionAgeOf(config, informers);
  const requests = { audit: deps.audit, auditHead: newestHeadOf(client, config.namespace) };
  const promotions = new PromotionReconciler({ ...shared, ...approvals, ...requests, admissionAge: age });
  const reruns = new ToolReruns({ client: reader, clock, store, verifierPods });
  const requeue = (key: string): void => queues.tools.add(key);
  const toolAudits = new ToolAudits({ store, verifierPods, tools, audit: deps.audit, clock, requeue });
  return { verifierPods, verifierPool, reportedTools, promotions, promotionStore: store, reruns, toolAudits };
}

function createPolicyMonitor(
  config: OperatorConfig,
  client: KubeClient,
  clock: Clock,
  informers: Informers,
): AdmissionPolicyMonitor {
  return new AdmissionPolicyMonitor({
    client,
    clock,
    expected: config.admissionPolicies?.policies,
    policies: informers.admissionPolicies.cache,
    bindings: informers.admissionBindings.cache,
  });
}

/** An object that the operator maintains in a namespace, from the informer of its type that contains it. */
function cachedChild(
  { children }: Informers,
  type: ResourceType,
  namespace: string,
  name: string,
): PlainObject | undefined {
  const ofType = children.filter((child) => child.type === type);
  return ofType.map(({ cache }) => cache.get(namespace, name)).find((found) => found !== undefined);
}

function prerequisiteOptions(
  namespace: string,
  { config, pki, policies, validation }: Pick<Components, 'config' | 'pki' | 'policies' | 'validation'>,
): PrerequisiteOptions | undefined {
  const { endpoints } = pki;
  if (endpoints === undefined) return undefined;
  const own = policies.list().filter(({ metadata }) => metadata.namespace === namespace);
  const warmPods = config.sandboxClasses.reduce((sum, sandboxClass) => sum + poolSize(sandboxClass, namespace), 0);
  return {
    namespace,
    releaseNamespace: config.namespace,
    gatewayLabels: config.gateway.podLabels,
    egressLabels: config.egress?.podLabels,
    endpoints,
    // No pod runs under an invalid policy, and its quotas may not be readable.
    policies: own.filter((policy) => validation.specError(policy) === undefined),
    warmPods,
  };
}
