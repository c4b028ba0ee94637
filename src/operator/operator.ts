import type { KubeClient } from '../kube/client.ts';
import { Controller, type ControllerOptions } from '../kube/controller.ts';
import { type EventRecorder, createEventRecorder } from '../kube/event-recorder.ts';
import { createKubeClient } from '../kube/kube-client.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import type { Metrics } from '../kube/metrics.ts';
import { createRateLimiter } from '../kube/rate-limiter.ts';
import { PRIORITY } from '../kube/ready-keys.ts';
import type { Transport } from '../kube/transport.ts';
import { WorkQueue } from '../kube/work-queue.ts';
import type { Clock } from '../lib/clock.ts';
import type { Ids } from '../lib/ids.ts';
import type { Logger } from '../telemetry/log.ts';
import type { OperatorMetrics } from '../telemetry/temper-metrics.ts';
import { Examination } from './agent/examination.ts';
import { Failures } from './agent/failures.ts';
import { addIndexes } from './agent/observe.ts';
import { PodTemplates } from './agent/pod-template.ts';
import { AgentReconciler } from './agent/reconcile.ts';
import { Authority } from './authority/authority.ts';
import { ServerReload } from './authority/server-reload.ts';
import { StoreLosses } from './bus/store-losses.ts';
import type { OperatorConfig } from './config.ts';
import { countedClient, observeOperator } from './counts.ts';
import { Guard } from './guard/guard.ts';
import { toldWhenUnserved } from './guard/unserved.ts';
import { type Informers, createInformers } from './informers.ts';
import type { PrerequisiteOptions } from './namespace/objects.ts';
import { Namespaces } from './namespace/prepare.ts';
import { PolicyReconciler } from './policy/reconcile.ts';
import { Pool } from './pool/pool.ts';
import { reconcilePool, sizeOf } from './pool/reconcile.ts';
import { type Bus, type Facts, NO_FACTS, type SpendReader } from './ports.ts';
import { type Queues, route } from './routes.ts';
import { tasks } from './tasks.ts';

export interface OperatorDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly ids: Ids;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Metrics of agents, pods and API writes. */
  readonly counts?: OperatorMetrics;
  /** Unique per process. Holder identity of the Lease and reporting instance of Events. */
  readonly identity: string;
  readonly bus?: Bus;
  readonly facts?: Facts;
  readonly spend?: SpendReader;
  /** Leader election timing in milliseconds, for tests. */
  readonly election?: { leaseDuration: number; renewDeadline: number; retryPeriod: number };
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
  const { counts } = deps;
  const components = createComponents(
    config,
    deps,
    counts === undefined ? client : countedClient(client, counts),
    events,
  );
  if (counts !== undefined) observeOperator(counts, components);
  const { informers, queues } = components;
  startPools(config, queues);
  const requeueAll = () => {
    for (const namespace of activeNamespaces(config, informers)) requeueNamespace(informers, queues, namespace);
  };
  for (const { subscribe } of [informers.guardPolicies, informers.guardBindings]) {
    subscribe((_change, origin) => (origin === 'change' ? requeueAll() : undefined));
  }
  return new Manager({
    clock: deps.clock,
    log: deps.log,
    informers: informers.all,
    controllers: controllers(components, deps),
    tasks: tasks({
      ...deps,
      pki: components.pki,
      natsReload: createServerReload(config, deps),
      policyMonitor: components.policyMonitor,
      bus: deps.bus,
      facts: components.facts,
      dataLoss: new StoreLosses({ ...deps, ...components, namespace: config.namespace }),
      agents: components.agents,
      policies: components.policies,
      pods: components.pods,
      agentQueue: queues.agents,
      namespaces: () => activeNamespaces(config, informers),
      again: (namespace) => requeueNamespace(informers, queues, namespace),
    }),
    ...(election === undefined ? {} : { election }),
    resources: [events],
  });
}

function createServerReload({ nats }: OperatorConfig, deps: OperatorDeps): ServerReload | undefined {
  return nats?.service === undefined ? undefined : new ServerReload({ ...deps, url: nats.url });
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
  const validation = new Examination();
  const pki = new Authority({ client, clock: deps.clock, config });
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
    pool: new Pool(pods),
    pki,
    policyMonitor: createGuard(config, client, informers),
    namespaces: new Namespaces({
      client,
      known: (type, namespace, name) => {
        const ofType = informers.children.filter((child) => child.type === type);
        return ofType.map(({ cache }) => cache.get(namespace, name)).find((found) => found !== undefined);
      },
      options: (namespace) => prerequisiteOptions(config, pki, informers, validation, namespace),
    }),
    templates: new PodTemplates(config),
    validation,
    crashBackoff: new Failures(),
    facts: deps.facts ?? NO_FACTS,
    bus: deps.bus,
    spend: deps.spend,
    ids: deps.ids,
  };
}

type Components = ReturnType<typeof createComponents>;

function controllers(components: Components, deps: OperatorDeps): Controller[] {
  const { config, informers, queues, namespaces, pool } = components;
  const agents = new AgentReconciler(components);
  const policies = new PolicyReconciler(components);
  route({
    informers,
    queues,
    pool,
    agentGone: ({ metadata }) => agents.forget(metadata.uid),
    policyGone: ({ metadata }) => policies.forget(metadata.uid),
    isForeignStatus: (object) => agents.statuses.isForeign(object) || policies.statuses.isForeign(object),
    childGone: (plural, object) => namespaces.removed(plural, object),
  });
  const controller = (name: keyof Queues, workers: number, reconcile: ControllerOptions['reconcile']) => {
    const newId = () => deps.ids.next('reconcile');
    return new Controller({ ...deps, name, queue: queues[name], concurrency: workers, newId, reconcile });
  };
  const foreignPolicyDeps = { ...components, namespace: config.namespace };
  const warnOnForeignPolicy = (reconcile: ControllerOptions['reconcile']) =>
    toldWhenUnserved(foreignPolicyDeps, reconcile);
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
        return isPrepared ? { kind: 'done' } : { kind: 'again', after: RETRY_MS };
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

function createGuard({ guard }: OperatorConfig, client: KubeClient, informers: Informers): Guard {
  const policies = informers.guardPolicies.cache;
  return new Guard({ client, expected: guard?.policies, policies, bindings: informers.guardBindings.cache });
}

function prerequisiteOptions(
  config: OperatorConfig,
  { gatewayEndpoint }: Authority,
  informers: Informers,
  validation: Examination,
  namespace: string,
): PrerequisiteOptions | undefined {
  if (gatewayEndpoint === undefined) return undefined;
  const own = informers.policies.cache.list().filter(({ metadata }) => metadata.namespace === namespace);
  // No pod runs under an invalid policy, and its quotas may not be readable.
  const policies = own.filter((policy) => validation.specError(policy) === undefined);
  const warmPods = config.sandboxClasses.reduce((sum, sandboxClass) => sum + sizeOf(sandboxClass, namespace), 0);
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
