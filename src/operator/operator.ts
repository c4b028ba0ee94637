import type { KubeClient } from '../kube/client/kube-client.ts';
import { Controller, type ControllerOptions } from '../kube/controller/controller.ts';
import { type EventRecorder, createEventRecorder } from '../kube/events/event-recorder.ts';
import { createKubeClient } from '../kube/client/http-kube-client.ts';
import { LeaderElection } from '../kube/leader-election/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import type { Metrics } from '../kube/metrics.ts';
import { createRateLimiter } from '../kube/controller/rate-limiter.ts';
import { PRIORITY } from '../kube/controller/priority-fifo.ts';
import type { Transport } from '../kube/client/transport.ts';
import { WorkQueue } from '../kube/controller/work-queue.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { Logger } from '../telemetry/log.ts';
import type { OperatorMetrics } from '../telemetry/temper-metrics.ts';
import { ValidationCache } from './agent/validation-cache.ts';
import { CrashBackoff } from './pods/crash-backoff.ts';
import { addIndexes } from './agent/observe.ts';
import { PodTemplates } from './pods/pod-template.ts';
import { AgentReconciler } from './agent/reconcile.ts';
import { ReleasePki } from './pki/release-pki.ts';
import { NatsReload } from './pki/nats-reload.ts';
import { DataLossDetector } from './nats/data-loss.ts';
import type { OperatorConfig } from './config.ts';
import { withWriteMetrics, registerOperatorGauges } from './metrics.ts';
import { AdmissionPolicyMonitor } from './admission-policies/monitor.ts';
import { withForeignPolicyWarning } from './admission-policies/foreign-policy-warning.ts';
import { type Informers, createInformers } from './kube/informers.ts';
import type { PrerequisiteOptions } from './namespace/objects.ts';
import { NamespaceObjects } from './namespace/prepare.ts';
import { PolicyReconciler } from './policy/reconcile.ts';
import { WarmPool } from './pool/warm-pool.ts';
import { reconcilePool, poolSize } from './pool/reconcile.ts';
import { type AgentActivity, type AgentStats, NO_AGENT_STATS, type SpendReader } from './ports.ts';
import { type Queues, routeEvents } from './event-routes.ts';
import { leaderTasks } from './leader-tasks.ts';

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
  /** Leader election timing in milliseconds, for tests. */
  readonly election?: { leaseDurationMs: number; renewDeadlineMs: number; retryPeriodMs: number };
}

const COMPONENT = 'temper-operator';
const CONCURRENCY = 8;
const RETRY_MS = 1_000;

/** Creates the operator without starting it. */
export function createOperator(config: OperatorConfig, deps: OperatorDeps): Manager {
  const election = config.leaderElection === false ? undefined : createElection(config, deps);
  const client = createKubeClient(
    deps.transport,
    election === undefined ? {} : { isLeader: () => election.isLeader() },
  );
  const events = createEventRecorder({ ...deps, client, component: COMPONENT, instance: deps.identity });
  const { operatorMetrics } = deps;
  const components = createComponents(
    config,
    deps,
    operatorMetrics === undefined ? client : withWriteMetrics(client, operatorMetrics),
    events,
  );
  if (operatorMetrics !== undefined) registerOperatorGauges(operatorMetrics, components);
  const { informers, queues } = components;
  startPools(config, queues);
  const requeueAll = () => {
    for (const namespace of activeNamespaces(config, informers)) requeueNamespace(informers, queues, namespace);
  };
  for (const { subscribe } of [informers.admissionPolicies, informers.admissionBindings]) {
    subscribe((_change, origin) => (origin === 'change' ? requeueAll() : undefined));
  }
  return new Manager({
    clock: deps.clock,
    log: deps.log,
    informers: informers.all,
    controllers: controllers(components, deps),
    tasks: leaderTasks({
      ...deps,
      pki: components.pki,
      natsReload: createNatsReload(config, deps),
      policyMonitor: components.policyMonitor,
      agentActivity: deps.agentActivity,
      agentStats: components.agentStats,
      dataLoss: new DataLossDetector({ ...deps, ...components, namespace: config.namespace }),
      agents: components.agents,
      policies: components.policies,
      pods: components.pods,
      agentQueue: queues.agents,
      namespaces: () => activeNamespaces(config, informers),
      requeueNamespace: (namespace) => requeueNamespace(informers, queues, namespace),
    }),
    ...(election === undefined ? {} : { election }),
    resources: [events],
  });
}

function createNatsReload({ nats }: OperatorConfig, deps: OperatorDeps): NatsReload | undefined {
  return nats?.service === undefined ? undefined : new NatsReload({ ...deps, url: nats.url });
}

function createElection({ namespace }: OperatorConfig, deps: OperatorDeps): LeaderElection {
  const client = createKubeClient(deps.transport);
  return new LeaderElection({ ...deps, ...deps.election, client, namespace, name: COMPONENT });
}

/** The components that the reconcilers, event routes, leader tasks and metrics share. */
function createComponents(config: OperatorConfig, deps: OperatorDeps, client: KubeClient, events: EventRecorder) {
  const informers = createInformers(deps, config);
  const agents = informers.agents.cache;
  const pods = informers.pods.cache;
  addIndexes(agents, pods);
  const validation = new ValidationCache();
  const pki = new ReleasePki({ client, clock: deps.clock, config });
  return {
    client,
    clock: deps.clock,
    config,
    events,
    informers,
    agents,
    pods,
    policies: informers.policies.cache,
    queues: createQueues(deps),
    pool: new WarmPool(pods),
    pki,
    policyMonitor: createPolicyMonitor(config, client, informers),
    namespaces: new NamespaceObjects({
      client,
      cached: (type, namespace, name) => {
        const ofType = informers.children.filter((child) => child.type === type);
        return ofType.map(({ cache }) => cache.get(namespace, name)).find((found) => found !== undefined);
      },
      options: (namespace) => prerequisiteOptions(config, pki, informers, validation, namespace),
    }),
    templates: new PodTemplates(config),
    validation,
    crashBackoff: new CrashBackoff(),
    agentStats: deps.agentStats ?? NO_AGENT_STATS,
    agentActivity: deps.agentActivity,
    spend: deps.spend,
    ids: deps.ids,
  };
}

type Components = ReturnType<typeof createComponents>;

function controllers(components: Components, deps: OperatorDeps): Controller[] {
  const { config, informers, queues, namespaces, pool } = components;
  const agents = new AgentReconciler(components);
  const policies = new PolicyReconciler(components);
  routeEvents({
    informers,
    queues,
    pool,
    onAgentDeleted: ({ metadata }) => agents.forget(metadata.uid),
    onPolicyDeleted: ({ metadata }) => policies.forget(metadata.uid),
    isExternalStatus: (object) => agents.statuses.isExternalWrite(object) || policies.statuses.isExternalWrite(object),
    onChildDeleted: (plural, object) => namespaces.onDeleted(plural, object),
  });
  const controller = (name: keyof Queues, workers: number, reconcile: ControllerOptions['reconcile']) => {
    const newId = () => deps.ids.next('reconcile');
    return new Controller({ ...deps, name, queue: queues[name], concurrency: workers, newId, reconcile });
  };
  const foreignPolicyDeps = { ...components, namespace: config.namespace };
  const warnOnForeignPolicy = (reconcile: ControllerOptions['reconcile']) =>
    withForeignPolicyWarning(foreignPolicyDeps, reconcile);
  return [
    controller(
      'agents',
      config.concurrency ?? CONCURRENCY,
      warnOnForeignPolicy((key, context) => agents.reconcile(key, context)),
    ),
    controller(
      'policies',
      1,
      warnOnForeignPolicy((key, context) => policies.reconcile(key, context)),
    ),
    controller('pools', 2, (key, context) => reconcilePool(components, key, context)),
    controller(
      'namespaces',
      1,
      warnOnForeignPolicy(async (namespace, { signal }) => {
        if (!activeNamespaces(config, informers).includes(namespace)) return { kind: 'done' };
        const isPrepared = await namespaces.prepare(namespace, signal);
        return isPrepared ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: RETRY_MS };
      }),
    ),
  ];
}

function createQueues(deps: OperatorDeps): Queues {
  const queue = (name: keyof Queues) => new WorkQueue({ ...deps, name, limiter: createRateLimiter(deps.clock) });
  return {
    agents: queue('agents'),
    policies: queue('policies'),
    pools: queue('pools'),
    namespaces: queue('namespaces'),
  };
}

function createPolicyMonitor(
  { admissionPolicies }: OperatorConfig,
  client: KubeClient,
  informers: Informers,
): AdmissionPolicyMonitor {
  const policies = informers.admissionPolicies.cache;
  return new AdmissionPolicyMonitor({
    client,
    expected: admissionPolicies?.policies,
    policies,
    bindings: informers.admissionBindings.cache,
  });
}

function prerequisiteOptions(
  config: OperatorConfig,
  { gatewayEndpoint }: ReleasePki,
  informers: Informers,
  validation: ValidationCache,
  namespace: string,
): PrerequisiteOptions | undefined {
  if (gatewayEndpoint === undefined) return undefined;
  const own = informers.policies.cache.list().filter(({ metadata }) => metadata.namespace === namespace);
  // No pod runs under an invalid policy, and its quotas may not be readable.
  const policies = own.filter((policy) => validation.specError(policy) === undefined);
  const warmPods = config.sandboxClasses.reduce((sum, sandboxClass) => sum + poolSize(sandboxClass, namespace), 0);
  const { podLabels } = config.gateway;
  return {
    namespace,
    releaseNamespace: config.namespace,
    gatewayLabels: podLabels,
    gatewayEndpoint,
    policies,
    warmPods,
  };
}

/** Namespaces with agents or with a warm pool. */
function activeNamespaces({ sandboxClasses }: OperatorConfig, { agents }: Informers): string[] {
  const pools = sandboxClasses.flatMap(({ pool = [] }) => pool.map(({ namespace }) => namespace));
  return [...new Set([...agents.cache.list().map(({ metadata }) => metadata.namespace), ...pools])];
}

function startPools({ sandboxClasses }: OperatorConfig, { pools }: Queues): void {
  for (const { name, pool = [] } of sandboxClasses) {
    for (const { namespace } of pool) pools.add(`${namespace}/${name}`, PRIORITY.resync);
  }
}

function requeueNamespace({ agents }: Informers, queues: Queues, namespace: string): void {
  queues.namespaces.add(namespace);
  for (const { metadata } of agents.cache.list()) {
    if (metadata.namespace === namespace) queues.agents.add(`${namespace}/${metadata.name}`, PRIORITY.resync);
  }
}
