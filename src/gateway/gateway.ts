import { sessionIdleMs } from '../agent/session/session-age.ts';
import { PodBindings } from '../identity/pod-bindings.ts';
import { VerifierPodIndex } from '../identity/verifier-pod-index.ts';
import { loadClusterAccess } from '../kube/client/cluster-access.ts';
import type { Environment } from '../kube/client/loaded-cluster.ts';
import { startHealthServer } from '../kube/health.ts';
import { createKubeClient } from '../kube/client/http-kube-client.ts';
import { keyOf } from '../kube/informer/store.ts';
import { METRICS } from '../kube/metrics.ts';
import { createTransport, type Transport } from '../kube/client/transport.ts';
import { onAbort, whenAborted } from '../lib/async/abort.ts';
import { TemperError } from '../lib/errors.ts';
import { FairQueue } from '../lib/async/fair-queue.ts';
import { systemClock as clock } from '../lib/clock.ts';
import { type Digest, sha256 } from '../lib/canonical.ts';
import { ulids } from '../lib/ids.ts';
import { createNatsAudit } from '../nats/audit.ts';
import { createToolAuditStore } from '../nats/promotion/tool-audits.ts';
import { natsAuditStream } from '../nats/audit-stream.ts';
import type { JetStreamConnection } from '../nats/connection/connection.ts';
import { NotificationListener } from '../nats/notify/notifications.ts';
import { subjects } from '../nats/jetstream/names.ts';
import { createDeadLetters } from '../nats/dead-letters/dead-letters.ts';
import { createSessionEvents } from '../nats/session-events.ts';
import { createNatsInbox, type NatsInbox } from '../nats/inbox/inbox.ts';
import { DEFAULT_RELEASE } from '../nats/residents/resident.ts';
import { StorageQuota } from '../nats/residents/storage-quota.ts';
import { SessionHeads } from '../nats/sessions/session-heads.ts';
import type { NatsSessionStore } from '../nats/sessions/port.ts';
import { createSessionStore } from '../nats/sessions/session-store.ts';
import { openSessionRegistry, type SessionRegistry } from '../nats/sessions/session-registry.ts';
import { createPendingCalls } from '../nats/pending-calls.ts';
import { specialistEnd } from './children/specialist-end.ts';
import { createAgentScheduleStore } from '../nats/schedules/agent-schedule-store.ts';
import { createScheduleStates } from '../nats/schedules/schedule-states.ts';
import { eventDeps } from './events/deps.ts';
import { messageFailed } from './events/platform-events.ts';
import { startResumingEvents } from './events/resume-events.ts';
import { TriggerIndex } from './events/trigger-index.ts';
import { createChildRequests } from '../nats/children/child-requests.ts';
import { type Asks, createAsks } from '../nats/tasks/asks.ts';
import { createPeerTasks } from '../nats/tasks/peer-tasks.ts';
import { createTaskRecords } from '../nats/tasks/task-records.ts';
import { createWakeups, type Wakeups } from '../nats/wakeups.ts';
import { createManifestLoader } from '../api/manifests.ts';
import type { Capability } from '../api/v1alpha1/capability.ts';
import type { EmergentTool } from '../api/v1alpha1/emergenttool.ts';
import { PATTERN_RULES } from '../policy/patterns/pattern-rules.ts';
import type { Logger } from '../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { GATEWAY_METRICS, type GatewayMetrics } from '../telemetry/temper-metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { AllBrokeredTools } from './brokered/port.ts';
import { openBrokeredTools } from './brokered/start.ts';
import type { AgentRepositories } from './git/agent-repositories.ts';
import { startRepositories } from './git/start.ts';
import { createPromotionDeps } from './promotion/promotion-deps.ts';
import type { GatewayConfig } from './config.ts';
import { withInboxMetrics } from './delivery/instrumented-inbox.ts';
import { AgentDeactivations } from './cluster/agent-deactivations.ts';
import { inService, WatchedDemotions } from './cluster/demotions.ts';
import { CallApprovals } from './approvals/call-approvals.ts';
import { indexCallApprovals } from './approvals/approval-index.ts';
import type { GatewayDeps } from './deps.ts';
import { WatchedAgentDirectory } from './cluster/agent-directory.ts';
import { clusterAuthenticator } from './cluster/cluster-authenticator.ts';
import { WatchedCatalog } from './discovery/catalog.ts';
import { WatchedSkills } from './discovery/skills.ts';
import { drain } from './http/drain.ts';
import { createAnswerSignatures } from './delivery/answer-signatures.ts';
import { createDeliveryTokens } from './delivery/token.ts';
import { registerNatsMetrics, withAuditAlarm } from './nats-metrics.ts';
import { CORE_ROUTES } from './routes.ts';
import type { OpenModule, GatewayModule } from './modules.ts';
import { clusterSource, openNats, openTracing } from './start/connect.ts';
import { openServer, portOf } from './listener/tls-server.ts';
import { openWebhooks } from './webhooks/server.ts';
import { ReportLimits, REVIEWS } from './storage/report-limits.ts';
import type { AgentState } from './agent-state.ts';
import { requestWakeup } from './pods/wakeup.ts';
import { Answers } from './tasks/answers.ts';
import { createTaskRecorder } from './tasks/recorder.ts';
import { withPromotedTools } from './discovery/promoted-tools.ts';
import { createSessionContent } from './storage/session-content.ts';
import { createSources, type GatewaySources, watchSourceKeys } from './storage/sources.ts';
import { withheldSessions, withholdsSources } from './storage/withheld-sessions.ts';
import { withResidents } from './storage/resident-inbox.ts';
import { type SessionOwner, startIdleSessions } from './storage/idle-sessions.ts';
import { trimStreams } from './storage/trimmed-streams.ts';
import { FileWatcher } from '../kube/file-watcher.ts';
import { startPullRequests } from './pull-requests/cluster.ts';
import {
  createGatewayInformers,
  EMERGENT_TOOLS,
  type GatewayInformers,
  type WatchedTool,
  CAPABILITIES,
} from './cluster/informers.ts';

export interface GatewayRun {
  log: Logger;
  /** Starts the drain. */
  signal: AbortSignal;
  openModule: OpenModule;
  /** Contains the address of the API server in a pod. */
  environment?: Environment;
  /** Version of the software, for traces and metrics. */
  version?: string;
  /** Called when the server accepts requests. */
  listening?: (addresses: { port: number; healthPort: number; webhookPort: number | undefined }) => void;
}

/** Runs one replica of the gateway until the signal aborts and its requests have ended. Throws TEMPER_BUS_UNAVAILABLE when the client of NATS gives up. */
export async function runGateway(config: GatewayConfig, run: GatewayRun): Promise<void> {
  try {
    await serve(config, run);
  } catch (error) {
    // A shutdown during the wait for the API server or NATS leaves nothing to finish.
    if (!run.signal.aborted) throw error;
    run.log.info({ error }, 'shut down during startup');
  }
}

async function serve(config: GatewayConfig, run: GatewayRun): Promise<void> {
  const { log, signal } = run;
  const draining = new AbortController();
  await using stack = new AsyncDisposableStack();
  const registry = createRegistry();
  const [metrics, counts] = [registerMetrics(registry, METRICS), registerMetrics(registry, GATEWAY_METRICS)];
  counts.gauge('temper_build_info', { version: run.version ?? '', node: process.versions.node }, 1);
  const tracing = stack.use(await openTracing(config, run));
  const access = await loadClusterAccess(clusterSource(config, run), clock);
  const transport = stack.use(createTransport({ access, clock, metrics, component: 'gateway' }));
  const watches = stack.use(createGatewayInformers(config, { transport, clock, log, metrics, random: Math.random }));
  const pending = new Set(['bus', 'listener']);
  onAbort(draining.signal, () => pending.add('drain'));
  const notReady = () => [...watches.waitingFor(), ...pending];
  const health = stack.use(await startHealthServer({ ...config.health, clock, registry, notReady }));
  const directory = startDirectory(watches);
  const triggers = new TriggerIndex();
  watches.agents.subscribe((change) => triggers.agentChanged(change));
  const bus = stack.use(await openNats(config, run));
  pending.delete('bus');
  registerNatsMetrics(bus, counts);
  const storage = openStorage(config, bus, directory);
  const namespaceOf = (agentUid: string) => directory.byUid(agentUid)?.agent.metadata.namespace;
  trimStreams({ connection: bus, ...config.storage, namespaceOf, metrics: counts, log });
  const keyring = await watchSourceKeys(config.sourceKeys, { clock, log }, stack);
  const sources = createSources(keyring, { bus, storage, clock });
  const { demotions, catalog, skills } = startCatalog(watches, { transport, log, directory, sources });
  const keys = stack.use(await openTokenKeys(config, log));
  const used = { directory, catalog, clock, log, metrics: counts, draining: draining.signal };
  const repositories = startRepositories({ ...config, ...signatures(keys), clock });
  const brokered = openBrokeredTools(watches, { ...config, ...signatures(keys), ...used, repositories });
  const sessionsOf = openSessions({ bus, storage, sources, directory });
  const tools = { brokered, repositories };
  const shared = { storage, sources, sessionsOf, bus, directory, triggers, demotions, catalog, skills, ...tools };
  const { models, hasEgress } = config;
  const modules = stack.use(
    await run.openModule({ ...shared, clock, ids: ulids, log, metrics: counts, models, hasEgress }),
  );
  const verifiers = new VerifierPodIndex(watches.verifiers.store);
  const own = { config, log, counts, tracing, transport, watches, draining: draining.signal };
  const context = { ...own, ...shared, modules, keys, verifiers };
  const deps = depsOf(context);
  const server = await openServer(context, deps, [...CORE_ROUTES, ...modules.routes], stack);
  const webhooks = await openWebhooks(context, deps, stack);
  // Before the first lists arrive every agent would seem not to exist.
  watches.start();
  await watches.synced(signal);
  startTasks(context, deps, stack);
  await Promise.all([server.listen(config.listen), webhooks?.listen()]);
  pending.delete('listener');
  run.listening?.({ port: portOf(server), healthPort: health.port, webhookPort: webhooks?.port() });
  await whenAborted(AbortSignal.any([signal, bus.closed]));
  log.info({}, 'draining');
  await Promise.all([drain(server, draining, clock), webhooks?.drain(draining)]);
  if (!signal.aborted) throw connectionClosed();
}

/** The client of NATS has given up, such as for a server that is too old or a key that it cannot read. A new process connects again. */
function connectionClosed(): TemperError {
  return new TemperError(
    'TEMPER_BUS_UNAVAILABLE',
    'the client of NATS has given up its connection, so this replica ends',
  );
}

function openStorage(
  { nats, storage: limits }: GatewayConfig,
  connection: JetStreamConnection,
  directory: WatchedAgentDirectory,
): StorageQuota {
  const identify = (uid: string) => {
    const { namespace, name } = directory.byUid(uid)?.agent.metadata ?? {};
    return namespace === undefined || name === undefined ? undefined : { namespace, name, uid };
  };
  return new StorageQuota({ connection, limits, release: nats.release ?? DEFAULT_RELEASE, identify });
}

/** The sessions of each agent. All of them share what this process remembers, and one queue of large reads, in which agents take turns. */
function openSessions({
  bus,
  storage,
  sources,
  directory,
}: Pick<ServerContext, 'bus' | 'storage' | 'sources' | 'directory'>) {
  const [largeReads, heads] = [new FairQueue(), new SessionHeads(bus)];
  return (agentUid: string): NatsSessionStore => {
    const store = createSessionStore(bus, agentUid, {
      quota: storage.of(agentUid),
      largeRead: (work) => largeReads.run(agentUid, work),
      heads,
    });
    const state = directory.byUid(agentUid);
    const isWithheld = state !== undefined && withholdsSources(state);
    return isWithheld ? withheldSessions(store, sources.texts, agentUid) : store;
  };
}

/** With the current keys. */
function signatures(keys: FileWatcher): Pick<GatewayDeps, 'deliveryTokens' | 'answerSignatures'> {
  const current = () => keys.contents;
  return { deliveryTokens: createDeliveryTokens(current), answerSignatures: createAnswerSignatures(current) };
}

function openTokenKeys({ deliveryTokenKeys }: GatewayConfig, log: Logger): Promise<FileWatcher> {
  return FileWatcher.open({
    paths: deliveryTokenKeys.slice(0, 1),
    optional: deliveryTokenKeys.slice(1),
    clock,
    log,
    // Throws for invalid keys; the previous keys stay in use then.
    onChange: (contents) => void createDeliveryTokens(() => contents),
  });
}

/** What a gateway does besides answering requests. */
function startTasks(context: ServerContext, deps: GatewayDeps, stack: AsyncDisposableStack): void {
  stack.use(openPullRequests(context));
  const arrivals = stack.use(new NotificationListener(context.bus, subjects.notifyEvents()));
  stack.use(startResumingEvents({ ...deps, accepted: deps.acceptedEvents, events: deps.namespaceEvents, arrivals }));
  stack.use(startIdleSessions({ ...deps, agents: () => ownersOf(context.watches) }));
}

function openPullRequests({ config, transport, bus, directory, watches, log }: ServerContext): AsyncDisposable {
  const client = createKubeClient(transport, { isLeader: () => false });
  const { connections, releaseNamespace } = config;
  return startPullRequests({ connections, releaseNamespace, client, bus, directory, watches, clock, log });
}

function ownersOf({ agents }: GatewayInformers): SessionOwner[] {
  return agents.store
    .list()
    .flatMap(({ metadata: { namespace, name, uid }, spec }) =>
      namespace === undefined || uid === undefined
        ? []
        : [{ namespace, name, uid, sessionIdleMs: sessionIdleMs(spec) }],
    );
}

interface ServerContext {
  config: GatewayConfig;
  log: Logger;
  counts: GatewayMetrics;
  tracing: Tracing;
  transport: Transport;
  watches: GatewayInformers;
  directory: WatchedAgentDirectory;
  triggers: TriggerIndex;
  demotions: WatchedDemotions;
  catalog: WatchedCatalog;
  skills: WatchedSkills;
  brokered: AllBrokeredTools;
  repositories: AgentRepositories;
  bus: JetStreamConnection;
  storage: StorageQuota;
  sources: GatewaySources;
  sessionsOf: (agentUid: string) => NatsSessionStore;
  modules: GatewayModule;
  keys: FileWatcher;
  verifiers: VerifierPodIndex;
  draining: AbortSignal;
}

function startDirectory(watches: GatewayInformers): WatchedAgentDirectory {
  const bindings = new PodBindings(watches.agents.store, watches.pods.store);
  const directory = new WatchedAgentDirectory(watches.agents.store, watches.policies.store, bindings);
  watches.pods.subscribe((change) => directory.podChanged(change));
  watches.agents.subscribe((change) => directory.agentChanged(change));
  watches.policies.subscribe((change) => directory.policyChanged(change));
  return directory;
}

/** Timeout of one artifact read. After it the session opens without that tool. */
const READ_TIMEOUT_MS = 5_000;

interface CatalogDeps {
  transport: Transport;
  log: Logger;
  directory: WatchedAgentDirectory;
  sources: GatewaySources;
}

function startCatalog(
  watches: GatewayInformers,
  { transport, log, directory, sources }: CatalogDeps,
): { demotions: WatchedDemotions; catalog: WatchedCatalog; skills: WatchedSkills } {
  const deactivations = new AgentDeactivations(directory);
  const demotions = new WatchedDemotions(watches.tools.store, watches.approvals.store, deactivations.reason);
  const client = createKubeClient(transport, { isLeader: () => false });
  const read = (namespace: string, name: string) =>
    client.get<EmergentTool>(EMERGENT_TOOLS, { namespace, name }, AbortSignal.timeout(READ_TIMEOUT_MS));
  const catalog = new WatchedCatalog({
    read,
    sources: sources.tools,
    log,
    // The catalog gets its objects from the cache that has both parts.
    isServed: (tool) => demotions.isServed(tool as WatchedTool),
    isDeactivated: (namespace, agent, digest) => deactivations.has(namespace, agent, digest),
    onChange: (namespace) => directory.toolsChanged(namespace),
  });
  const skills = new WatchedSkills({
    read: (namespace, name) =>
      client.get<Capability>(CAPABILITIES, { namespace, name }, AbortSignal.timeout(READ_TIMEOUT_MS)),
    onChange: (namespace) => directory.toolsChanged(namespace),
  });
  watches.agents.subscribe(({ object }) => catalog.agentChanged(object.metadata.namespace ?? '', object.metadata.name));
  watches.capabilities.subscribe((change) => {
    catalog.capabilityChanged(change);
    skills.changed(change);
  });
  watches.tools.subscribe((change) => catalog.toolChanged(change));
  watches.approvals.subscribe(({ object }) => {
    for (const tool of demotions.affectedBy(object))
      catalog.toolChanged({ type: 'updated', key: keyOf(tool), object: tool });
    if (object.record.decision === 'Revoke') directory.toolsChanged(object.metadata.namespace ?? '');
  });
  return { demotions, catalog, skills };
}

function depsOf(context: ServerContext): GatewayDeps {
  const { log, counts, directory, demotions, catalog, skills } = context;
  const { bus, storage, sources, sessionsOf, modules, keys, draining, brokered, repositories } = context;
  const audit = withAuditAlarm(createNatsAudit(bus), counts, log);
  const quotaOf = (agentUid: string) => storage.of(agentUid);
  const registry = openSessionRegistry(bus, { quotaOf, sources: sources.tools });
  const promotions = createPromotionDeps({ ...context.config, ...context, registry, audit, clock });
  const records = openTaskRecords(bus, quotaOf, log);
  const { recorder, tasks } = records;
  const stored = createNatsInbox(bus, {}, async (letter) => {
    const platform = messageFailed(letter, { directory, events: events.namespaceEvents, log });
    await Promise.all([recorder.deadLettered(letter), answers.deadLettered(letter), platform]);
  });
  const inbox = withResidents(withInboxMetrics(stored, counts, clock), { quotaOf });
  const wakeups = createWakeups(bus);
  const childRequests = createChildRequests(bus, quotaOf);
  const answers = openAnswers(createAsks(bus, tasks), inbox, { directory, childRequests, sessionsOf, wakeups, log });
  const tools = withPromotedTools(registry, catalog, directory);
  const events = openEvents(context, inbox, wakeups);
  return {
    clock,
    brokered,
    repositories,
    ...storesOf(bus),
    ids: ulids,
    log,
    metrics: counts,
    spans: context.tracing.acceptSpans,
    identity: clusterAuthenticator({ ...context, releaseNamespace: context.config.releaseNamespace, clock }),
    directory,
    manifests: createManifestLoader({ patterns: PATTERN_RULES }),
    toolsVersion: (namespace, agent) => toolsVersionOf(catalog, demotions, namespace, agent),
    skills,
    ...signatures(keys),
    ...records,
    a2aUrl: context.config.a2aUrl,
    answers,
    childRequests,
    ...events,
    inbox,
    approvals: openApprovals(context, inbox, wakeups),
    toolsOf: servedTools(tools, demotions),
    sessionContent: createSessionContent({
      sessionsOf,
      registry: tools,
      demotions,
      onError: (error) => log.warn({ error }, 'the session of a delivered message could not be read or opened'),
    }),
    wakeups,
    audit,
    ...promotions,
    reportLimits: new ReportLimits(clock),
    reviewLimits: new ReportLimits(clock, REVIEWS),
    models: modules.catalog,
    sessionsOf,
    usage: modules.usage,
    draining,
  };
}

/** Stores that need nothing but the connection. */
function storesOf(
  bus: JetStreamConnection,
): Pick<GatewayDeps, 'agentSchedules' | 'scheduleStates' | 'events' | 'deadLetters' | 'auditStream' | 'toolAudits'> {
  return {
    agentSchedules: createAgentScheduleStore(bus),
    scheduleStates: createScheduleStates(bus),
    events: createSessionEvents(bus),
    deadLetters: createDeadLetters(bus),
    auditStream: natsAuditStream(() => bus),
    toolAudits: createToolAuditStore(bus),
  };
}

function openTaskRecords(bus: JetStreamConnection, quotaOf: Parameters<typeof createTaskRecords>[1], log: Logger) {
  const tasks = createTaskRecords(bus, quotaOf);
  const peerTasks = createPeerTasks(bus, tasks);
  return { tasks, peerTasks, recorder: createTaskRecorder({ records: tasks, peers: peerTasks, clock, log }) };
}

function openAnswers(
  asks: Asks,
  inbox: NatsInbox,
  {
    directory,
    childRequests,
    sessionsOf,
    wakeups,
    log,
  }: Pick<GatewayDeps, 'directory' | 'childRequests' | 'sessionsOf' | 'wakeups' | 'log'>,
): Answers {
  const agent = (uid: string) => directory.byUid(uid);
  const wake = (state: AgentState) => requestWakeup(state, { wakeups });
  const endSpecialist = specialistEnd({ directory, childRequests, clock });
  return new Answers({ asks, inbox, agent, sessionsOf, wake, endSpecialist, clock, log });
}

function openEvents(context: ServerContext, inbox: NatsInbox, wakeups: Wakeups): ReturnType<typeof eventDeps> {
  const { bus, directory, sessionsOf, triggers: index, counts: metrics, log } = context;
  const wake = (state: AgentState) => requestWakeup(state, { wakeups });
  return eventDeps(bus, { directory, inbox, wake, sessionsOf, clock, metrics, log, index });
}

function openApprovals(
  { bus, storage, directory, log, draining, watches }: ServerContext,
  inbox: NatsInbox,
  wakeups: Wakeups,
): CallApprovals {
  const approvals = new CallApprovals({
    calls: createPendingCalls(bus),
    quotaOf: (agentUid) => storage.of(agentUid),
    approvals: indexCallApprovals(watches.approvals.store),
    agent: (uid) => directory.byUid(uid),
    inbox,
    wakeups,
    clock,
    ids: ulids,
    log,
    signal: draining,
  });
  watches.approvals.subscribe((change) => approvals.approvalChanged(change));
  return approvals;
}

function servedTools(registry: Pick<SessionRegistry, 'tools'>, demotions: WatchedDemotions): GatewayDeps['toolsOf'] {
  return async (agent, session) => {
    const isOut = (digest: Digest): boolean => demotions.reason(agent, digest) !== undefined;
    return inService(await registry.tools(agent.agentUid, session), isOut);
  };
}

/** Empty while the agent has no promoted tools and its namespace no revocations. */
function toolsVersionOf(
  catalog: WatchedCatalog,
  demotions: WatchedDemotions,
  namespace: string,
  agent: string,
): string {
  const parts = [catalog.version(namespace, agent), demotions.revocations(namespace)];
  return parts.every((part) => part === '') ? '' : sha256(parts.join('\n'));
}
