import type { LeaderTask } from '../kube/manager.ts';
import { PRIORITY } from '../kube/controller/priority-fifo.ts';
import { messageOf } from '../lib/errors.ts';
import { ChildRequests } from './children/child-requests.ts';
import { endLateSpecialists } from './children/specialists.ts';
import { CallRequests } from './calls/call-requests.ts';
import { OrphanedPods } from './pods/orphaned-pods.ts';
import { ownerKeyOf } from './pods/pod-ownership.ts';
import { isLate } from './pods/start-delay.ts';
import { INDEX } from './agent/observe.ts';
import { StatusThrottle } from './agent/deferral/status-throttle.ts';
import { OUTAGE_GRACE_MS } from './agent/plan.ts';
import type { NatsServerReloads } from './pki/nats-reload.ts';
import type { DataLossDetector } from './nats/data-loss.ts';
import type { Components } from './components.ts';
import { activeNamespaces, requeueAllNamespaces, requeueNamespace, VERIFIERS_KEY } from './event-routes.ts';
import { countWakeups } from './metrics.ts';
import { DataGarbageCollector, type DataGcRound } from './data-gc.ts';
import type { ScheduleStore } from './schedules/ports.ts';
import type { StoredTool } from './tool/stored-tool.ts';
import type { WithheldStore } from './withheld/ports.ts';
import { SourceCollector } from './withheld/source-collector.ts';
import { DEFAULT_RELEASE } from '../nats/residents/resident.ts';
import type { PromotionRequest } from '../nats/promotion/promotion-requests.ts';
import { TYPES } from './kube/types.ts';
import type { AgentActivity, PullRequestReader, TrustEvidence } from './ports.ts';

export interface LeaderTaskDeps
  extends Pick<
    Components,
    | 'agentActivity'
    | 'agents'
    | 'agentStats'
    | 'audit'
    | 'client'
    | 'clock'
    | 'config'
    | 'events'
    | 'log'
    | 'operatorMetrics'
    | 'pki'
    | 'platformEvents'
    | 'pendingCalls'
    | 'childRequests'
    | 'pods'
    | 'policies'
    | 'policyMonitor'
    | 'pullRequests'
    | 'promotions'
    | 'promotionStore'
    | 'queues'
    | 'requestsInGit'
    | 'reruns'
    | 'revocationsInGit'
    | 'schedules'
    | 'scheduleStore'
    | 'sourceKeys'
    | 'starts'
    | 'toolAudits'
    | 'tools'
    | 'trustEvidence'
    | 'withheld'
  > {
  /** Undefined with an external NATS server. */
  readonly natsReload: NatsServerReloads | undefined;
  readonly dataLoss: DataLossDetector;
  /** One round of the provenance chain; undefined without NATS. */
  readonly auditChain: ((signal: AbortSignal) => Promise<number>) | undefined;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** The operator does not watch Services and Secrets of the release, so it polls them. */
const PKI_INTERVAL_MS = MINUTE_MS;
const POLICY_INTERVAL_MS = MINUTE_MS;
const POLICY_RETRY_MS = 2 * SECOND_MS;
const GC_INTERVAL_MS = 10 * MINUTE_MS;
const PROMOTIONS_INTERVAL_MS = 5 * MINUTE_MS;
const RETRY_MS = 10 * SECOND_MS;
const DEFAULT_SWEEP_HOURS = 24;
const LATE_POD_INTERVAL_MS = 15 * SECOND_MS;
const ORPHAN_INTERVAL_MS = MINUTE_MS;
const SOURCES_INTERVAL_MS = MINUTE_MS;
const PULL_REQUEST_INTERVAL_MS = 15 * SECOND_MS;

/** Background tasks of the leader, besides the controllers. A failed round is retried with the next one. */
export function leaderTasks(deps: LeaderTaskDeps): LeaderTask[] {
  const { pki, agentActivity } = deps;
  const throttle = new StatusThrottle(deps.clock);
  const lastRefresh = { at: Number.NEGATIVE_INFINITY };
  const orphans = new OrphanedPods(deps, INDEX.uid);
  const periodicTasks: LeaderTask[] = [
    periodic(deps, 'pki', async (signal) => {
      const before = pki.natsConflict;
      if (await pki.reconcile(signal)) requeueAllNamespaces(deps);
      reportNatsConflict(deps, before);
      return pki.endpoints === undefined ? SECOND_MS : PKI_INTERVAL_MS;
    }),
    periodic(deps, 'admission-policies', (signal) => refreshAdmissionPolicies(deps, lastRefresh, signal)),
    periodic(deps, 'agent-stats', (signal) => requeueOnNewStats(deps, throttle, signal)),
    periodic(deps, 'late-pods', async () => {
      for (const agent of agentsWithLatePods(deps)) deps.queues.agents.add(agent, PRIORITY.resync);
      return LATE_POD_INTERVAL_MS;
    }),
    periodic(deps, 'orphaned-pods', async (signal) => {
      const deleted = await orphans.collect(signal);
      if (deleted > 0) deps.log.info({ pods: deleted }, 'deleted pods of agents that no longer exist');
      return ORPHAN_INTERVAL_MS;
    }),
  ];
  periodicTasks.push(...optionalTasks(deps));
  if (agentActivity === undefined) return periodicTasks;
  const gc = dataGarbageCollector(deps, agentActivity);
  periodicTasks.push(
    requeueFromStream(deps, 'wakeups', (signal) => countWakeups(agentActivity.wakeups(signal), deps.operatorMetrics)),
  );
  periodicTasks.push(
    periodic(deps, 'outages', async (signal) => {
      // The outage affects every agent status, and agents without a pod may have received messages meanwhile.
      for await (const _ of agentActivity.outages(OUTAGE_GRACE_MS, signal)) {
        requeueAllNamespaces(deps);
      }
      return signal.aborted ? 0 : MINUTE_MS;
    }),
  );
  periodicTasks.push(
    periodic(deps, 'gc', async (signal) => {
      if (agentActivity.unavailableSince() !== undefined) return RETRY_MS;
      reportRound(deps, await gc.collect(signal));
      return GC_INTERVAL_MS;
    }),
  );
  return periodicTasks;
}

/** Tasks of what the configuration can leave out. */
function optionalTasks(deps: LeaderTaskDeps): LeaderTask[] {
  const { natsReload } = deps;
  const tasks: LeaderTask[] = [];
  if (deps.trustEvidence !== undefined) tasks.push(requeueOnNewTasks(deps, deps.trustEvidence));
  tasks.push(...promotionTasks(deps));
  if (natsReload !== undefined) {
    tasks.push(periodic(deps, 'nats-reload', (signal) => natsReload.round(deps.pki.natsServer, signal)));
  }
  if (deps.scheduleStore !== undefined) tasks.push(...scheduleTasks(deps, deps.scheduleStore));
  const { platformEvents } = deps;
  if (platformEvents !== undefined) tasks.push(periodic(deps, 'platform-events', () => platformEvents.findGone()));
  if (deps.pullRequests !== undefined) tasks.push(pullRequestTask(deps, deps.pullRequests));
  if (deps.pendingCalls !== undefined) {
    const agent = (uid: string) => deps.agents.byIndex(INDEX.uid, uid)[0];
    const requests = new CallRequests({ ...deps, source: deps.pendingCalls, agent });
    tasks.push(periodic(deps, 'call-requests', (signal) => requests.round(signal)));
  }
  if (deps.childRequests !== undefined) {
    const children = new ChildRequests({ ...deps, source: deps.childRequests });
    tasks.push(
      periodic(deps, 'child-requests', async (signal) => {
        await children.run(signal);
        return RETRY_MS;
      }),
      periodic(deps, 'specialists', async (signal) => {
        await endLateSpecialists(deps, signal);
        return MINUTE_MS;
      }),
    );
  }
  if (deps.auditChain !== undefined) tasks.push(periodic(deps, 'audit-chain', deps.auditChain));
  if (deps.withheld !== undefined) tasks.push(withheldSourcesTask(deps, deps.withheld));
  return tasks;
}

function withheldSourcesTask(deps: LeaderTaskDeps, store: WithheldStore): LeaderTask {
  const { sourceKeys: keyring, queues } = deps;
  const requeue = ({ metadata }: StoredTool): void => queues.tools.add(`${metadata.namespace}/${metadata.name}`);
  const collector = new SourceCollector({ ...deps, store, keyring, requeue });
  return periodic(deps, 'withheld-sources', async () => {
    await collector.round();
    return SOURCES_INTERVAL_MS;
  });
}

function scheduleTasks(deps: LeaderTaskDeps, store: ScheduleStore): LeaderTask[] {
  const { schedules } = deps;
  const runEnds = periodic(deps, 'scheduled-run-ends', async (signal) => {
    for await (const end of store.ends(signal)) schedules?.onEnd(end);
    return RETRY_MS;
  });
  return [runEnds, periodic(deps, 'schedule-changes', async () => (await schedules?.readChanges()) ?? RETRY_MS)];
}

function pullRequestTask(deps: LeaderTaskDeps, reader: PullRequestReader): LeaderTask {
  const { requestsInGit, revocationsInGit, queues } = deps;
  return periodic(deps, 'pull-requests', async () => {
    const states = await reader.states();
    if (states === undefined) return PULL_REQUEST_INTERVAL_MS;
    for (const request of requestsInGit.update(states)) queues.requests.add(request, PRIORITY.resync);
    for (const approval of revocationsInGit.update(states)) queues.approvals.add(approval, PRIORITY.resync);
    return PULL_REQUEST_INTERVAL_MS;
  });
}

/** Takes requests, continues what an earlier leader left, and follows the results of verifiers and panels. */
function promotionTasks(deps: LeaderTaskDeps): LeaderTask[] {
  const { promotions, promotionStore: store, queues, reruns, toolAudits } = deps;
  if (promotions === undefined || store === undefined) return [];
  const requeue = (key: string): void => queues.promotions.add(key);
  queues.verifiers.add(VERIFIERS_KEY, PRIORITY.resync);
  return [
    periodic(deps, 'promotion-requests', async (signal) => {
      const take = async (request: PromotionRequest): Promise<void> => {
        const key = await promotions.accept(request, signal);
        if (key !== undefined) requeue(key);
      };
      await store.requests(take, signal);
      return signal.aborted ? 0 : RETRY_MS;
    }),
    periodic(deps, 'promotions', async (signal) => {
      reruns?.resume(deps.tools.list());
      await toolAudits?.resume();
      await promotions.resume(requeue, signal);
      return PROMOTIONS_INTERVAL_MS;
    }),
    periodic(deps, 'promotion-results', async (signal) => {
      for await (const _ of store.results(signal)) {
        promotions.waiting().forEach(requeue);
        for (const key of reruns?.waiting() ?? []) queues.tools.add(key);
      }
      return signal.aborted ? 0 : RETRY_MS;
    }),
    periodic(deps, 'tool-audits', async (signal) => {
      for await (const _ of store.results(signal)) await toolAudits?.round(signal);
      return signal.aborted ? 0 : RETRY_MS;
    }),
  ];
}

function dataGarbageCollector(deps: LeaderTaskDeps, agentActivity: AgentActivity): DataGarbageCollector {
  const { config, agents, client, clock, log } = deps;
  const { afterHours = DEFAULT_SWEEP_HOURS, dryRun = false } = config.nats?.sweep ?? {};
  return new DataGarbageCollector({
    agentActivity,
    agents: () => agents.list(),
    exists: async ({ namespace, name, uid }, signal) =>
      (await client.get(TYPES.agents, { namespace, name }, signal))?.metadata.uid === uid,
    clock,
    log,
    rules: {
      release: config.nats?.release ?? DEFAULT_RELEASE,
      namespaces: config.namespaces,
      waitMs: afterHours * 60 * MINUTE_MS,
      dryRun,
    },
  });
}

function reportRound({ operatorMetrics }: LeaderTaskDeps, round: DataGcRound): void {
  const { deleted, wouldDelete, ...states } = round;
  for (const [state, count] of Object.entries(states))
    operatorMetrics?.gauge('temper_agents_with_data', { state }, count);
  operatorMetrics?.count('temper_agent_data_deletions_total', { outcome: 'deleted' }, deleted);
  operatorMetrics?.count('temper_agent_data_deletions_total', { outcome: 'dryRun' }, wouldDelete);
}

/**
 * Checks all namespaces every minute, and every two seconds the namespaces where the admission policies are not in force, because
 * agents there wait for them.
 */
async function refreshAdmissionPolicies(
  deps: LeaderTaskDeps,
  lastRefresh: { at: number },
  signal: AbortSignal,
): Promise<number> {
  const now = deps.clock.monotonic();
  const isDue = now - lastRefresh.at >= POLICY_INTERVAL_MS;
  const namespaces = activeNamespaces(deps);
  deps.policyMonitor.retain(namespaces);
  for (const namespace of namespaces) {
    if (!isDue && !deps.policyMonitor.isNotEnforced(namespace)) continue;
    if (await deps.policyMonitor.refresh(namespace, signal)) requeueNamespace(deps, namespace);
  }
  if (isDue) lastRefresh.at = now;
  return POLICY_RETRY_MS;
}

/** Requeues agents whose status differs from the latest data from NATS. */
async function requeueOnNewStats(
  { agentStats, dataLoss, agents, policies, queues }: LeaderTaskDeps,
  throttle: StatusThrottle,
  signal: AbortSignal,
): Promise<number> {
  for await (const _ of agentStats.updates(signal)) {
    const store = agentStats.store();
    // First: the agent statuses still contain the queue lengths of the lost store.
    if (store !== undefined) await dataLoss.check(store, signal);
    for (const agent of agents.list()) {
      const { namespace, name } = agent.metadata;
      const policy = policies.get(namespace, agent.spec.trustPolicyRef.name);
      if (throttle.isChanged(agent, agentStats.get(agent, policy)))
        queues.agents.add(`${namespace}/${name}`, PRIORITY.resync);
    }
  }
  return signal.aborted ? 0 : MINUTE_MS;
}

/** Requeues agents with new records of tasks, which may raise or lower their level. */
function requeueOnNewTasks(deps: LeaderTaskDeps, evidence: TrustEvidence): LeaderTask {
  return periodic(deps, 'trust', async (signal) => {
    for await (const agentUids of evidence.updates(signal)) {
      for (const { metadata } of agentUids.flatMap((uid) => deps.agents.byIndex(INDEX.uid, uid)))
        deps.queues.agents.add(`${metadata.namespace}/${metadata.name}`, PRIORITY.resync);
    }
    return signal.aborted ? 0 : MINUTE_MS;
  });
}

function reportNatsConflict({ pki: { natsConflict: problem }, log }: LeaderTaskDeps, before: string | undefined): void {
  if (problem !== undefined && problem !== before) log.error({ problem }, 'the number of NATS servers was not changed');
}

/** Agents whose pods should be running by now. The start timeout produces no watch event, so it is polled. */
function agentsWithLatePods({ pods, clock }: LeaderTaskDeps): string[] {
  const late = pods.list().filter((pod) => isLate(pod, clock.now()));
  return late.map(ownerKeyOf).filter((key) => key !== undefined);
}

/** Calls `once` repeatedly. Waits the returned number of milliseconds, or RETRY_MS after a failure. */
function periodic(
  { clock, log }: LeaderTaskDeps,
  name: string,
  once: (signal: AbortSignal) => Promise<number>,
): LeaderTask {
  const run = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      let pause = RETRY_MS;
      try {
        pause = await once(signal);
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ task: name, error: messageOf(error) }, 'leader task failed; retrying');
      }
      await clock.sleep(pause, signal).catch(() => {});
    }
  };
  return { name, run };
}

/** Requeues the agent of each emitted UID, which a message wakes. */
function requeueFromStream(
  deps: LeaderTaskDeps,
  name: string,
  open: (signal: AbortSignal) => AsyncIterable<string>,
): LeaderTask {
  return periodic(deps, name, async (signal) => {
    for await (const uid of open(signal)) {
      const agent = deps.agents.byIndex(INDEX.uid, uid)[0];
      if (agent === undefined) continue;
      deps.starts.begin(uid, 'wake');
      deps.queues.agents.add(`${agent.metadata.namespace}/${agent.metadata.name}`);
    }
    return signal.aborted ? 0 : MINUTE_MS;
  });
}
