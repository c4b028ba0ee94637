import { Controller, type ControllerOptions, type ReconcileContext } from '../kube/controller/controller.ts';
import type { ReconcileResult } from '../kube/controller/result.ts';
import { withForeignPolicyWarning } from './admission-policies/foreign-policy-warning.ts';
import { AgentReconciler } from './agent/reconcile.ts';
import type { Components, OperatorDeps } from './components.ts';
import { isActiveNamespace, routeEvents, routeVerifiers } from './event-routes.ts';
import { routePlatformEvents } from './platform-events/routes.ts';
import { PolicyReconciler } from './policy/reconcile.ts';
import { CapabilityReconciler } from './capabilities/reconcile.ts';
import { routeCapabilities } from './capabilities/routes.ts';
import { reconcilePool } from './pool/reconcile.ts';
import { type CreateController, toolControllers } from './approval/controllers.ts';

type Reconcile = ControllerOptions['reconcile'];

const AGENT_CONCURRENCY = 8;
const PROMOTION_CONCURRENCY = 4;
/** Many schedules are due in the same second. */
const SCHEDULE_CONCURRENCY = 32;
/** Namespaces; one is never in work twice. */
const CAPABILITY_CONCURRENCY = 2;
const PLATFORM_EVENT_CONCURRENCY = 4;
const RETRY_MS = 1_000;
const ALTERED_RETRY_MS = 60_000;

/** Creates the controllers and subscribes their queues to the informers. */
export function createControllers(components: Components, deps: OperatorDeps): Controller[] {
  const { config } = components;
  const agents = new AgentReconciler(components);
  const policies = new PolicyReconciler(components);
  routeEvents({
    informers: components.informers,
    queues: components.queues,
    pool: components.pool,
    quotaReleases: components.quotaReleases,
    onAgentCreated: ({ metadata }) =>
      components.isLeader() ? components.starts.begin(metadata.uid, 'cold') : undefined,
    onAgentDeleted: (agent) => {
      agents.forget(agent);
      components.schedules?.forget(agent);
    },
    onPolicyDeleted: (policy) => policies.forget(policy),
    isExternalAgentStatus: (agent) => agents.isExternalStatus(agent),
    isExternalPolicyStatus: (policy) => policies.isExternalStatus(policy),
    onChildDeleted: (plural, object) => components.namespaces.onDeleted(plural, object),
  });
  routeVerifiers(components);
  const create: CreateController = (name, concurrency, reconcile) => {
    const newId = () => deps.ids.next('reconcile');
    return new Controller({ ...deps, name, queue: components.queues[name], concurrency, newId, reconcile });
  };
  const withWarning = (reconcile: Reconcile) =>
    withForeignPolicyWarning({ ...components, namespace: config.namespace }, reconcile);
  return [
    create(
      'agents',
      config.concurrency ?? AGENT_CONCURRENCY,
      withWarning((key, context) => agents.reconcile(key, context)),
    ),
    create(
      'policies',
      1,
      withWarning((key, context) => policies.reconcile(key, context)),
    ),
    create('pools', 2, (key, context) => reconcilePool(components, key, context)),
    create('verifiers', 1, (_key, context) => components.verifierPool.reconcile(context)),
    create(
      'promotions',
      PROMOTION_CONCURRENCY,
      async (key, context) => (await components.promotions?.reconcile(key, context)) ?? { kind: 'done' },
    ),
    create(
      'schedules',
      SCHEDULE_CONCURRENCY,
      async (key, context) => (await components.schedules?.reconcile(key, context)) ?? { kind: 'done' },
    ),
    create(
      'namespaces',
      1,
      withWarning((namespace, context) => reconcileNamespace(components, namespace, context)),
    ),
    capabilityController(components, create),
    ...platformEventControllers(components, create),
    ...toolControllers(components, create),
  ];
}

function capabilityController(components: Components, create: CreateController): Controller {
  const reconciler = new CapabilityReconciler(components);
  routeCapabilities({ ...components, queue: components.queues.capabilities, reconciler });
  return create('capabilities', CAPABILITY_CONCURRENCY, (namespace, context) =>
    reconciler.reconcile(namespace, context),
  );
}

/** None without NATS. */
function platformEventControllers(components: Components, create: CreateController): Controller[] {
  const { platformEvents, queues } = components;
  if (platformEvents === undefined) return [];
  routePlatformEvents({ ...components, queue: queues.platformEvents });
  return [create('platformEvents', PLATFORM_EVENT_CONCURRENCY, (key) => platformEvents.reconcile(key))];
}

async function reconcileNamespace(
  components: Components,
  namespace: string,
  { log, signal }: ReconcileContext,
): Promise<ReconcileResult> {
  if (!isActiveNamespace(components, namespace)) return { kind: 'done' };
  const preparation = await components.namespaces.prepare(namespace, signal);
  if (preparation.kind === 'prepared') return { kind: 'done' };
  if (preparation.kind === 'waiting') return { kind: 'requeueAfter', afterMs: RETRY_MS };
  log.warn({ error: preparation.message }, 'no agent pod is created in the namespace');
  return { kind: 'requeueAfter', afterMs: ALTERED_RETRY_MS };
}
