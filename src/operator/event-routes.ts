import { LABELS } from '../api/cluster.ts';
import { PRIORITY, type Priority } from '../kube/controller/priority-fifo.ts';
import type { ChangeSource } from '../kube/informer/reflector.ts';
import type { Change, KubeObject } from '../kube/informer/store.ts';
import type { WorkQueue } from '../kube/controller/work-queue.ts';
import { INDEX } from './agent/observe.ts';
import { podFingerprint } from './pods/pod-state.ts';
import type { OperatorConfig } from './config.ts';
import type { Cache } from './kube/cache.ts';
import type { Informers } from './kube/informers.ts';
import type { PlainObject, Pod, StoredAgent, StoredPolicy } from './kube/types.ts';
import { ownerKeyOf } from './pods/pod-ownership.ts';
import type { QuotaReleases } from './pods/quota-releases.ts';
import type { StoredTool } from './tool/stored-tool.ts';
import type { ToolQueues } from './tool/routes.ts';
import { policyKeyOf } from './policy/agent-ranks.ts';
import type { WarmPool } from './pool/warm-pool.ts';
import type { VerifierPods } from './verifier/verifier-pods.ts';

export interface Queues {
  readonly agents: WorkQueue;
  readonly policies: WorkQueue;
  /** Keys are `namespace/class`. */
  readonly pools: WorkQueue;
  /** Keys are namespaces. */
  readonly namespaces: WorkQueue;
  /** Keys are those of `queueKeyOf`. */
  readonly promotions: WorkQueue;
  /** Keys are those of agents. */
  readonly schedules: WorkQueue;
  /** One key, for all verifier pods of the release. */
  readonly verifiers: WorkQueue;
}

/** All work queues, by the name of their controller. */
export interface AllQueues extends Queues, ToolQueues {
  /** Keys are namespaces. */
  readonly capabilities: WorkQueue;
  /** Keys are those of `routePlatformEvents`. */
  readonly platformEvents: WorkQueue;
}

export interface RouteDeps {
  readonly informers: Informers;
  readonly queues: Queues;
  readonly pool: WarmPool;
  readonly quotaReleases: QuotaReleases;
  /** Called when an agent is created, but not for an agent that an informer lists. */
  readonly onAgentCreated: (agent: StoredAgent) => void;
  /** Called when an agent is deleted. */
  readonly onAgentDeleted: (agent: StoredAgent) => void;
  readonly onPolicyDeleted: (policy: StoredPolicy) => void;
  /** Did another writer write this status? */
  readonly isExternalAgentStatus: (agent: StoredAgent) => boolean;
  readonly isExternalPolicyStatus: (policy: StoredPolicy) => boolean;
  /** Called when an object that the operator maintains in a namespace is deleted. */
  readonly onChildDeleted: (plural: string, object: PlainObject) => void;
}

/** Delay of the agent count in a policy status, because many agents may be created at once. */
const COUNT_DELAY_MS = 10_000;

/** Subscribes to all informers and adds the affected keys to the queues. */
export function routeEvents(deps: RouteDeps): void {
  const { informers } = deps;
  informers.agents.subscribe((change, origin) => onAgent(deps, change, priorityOf(origin)));
  informers.policies.subscribe((change, origin) => onPolicy(deps, change, priorityOf(origin)));
  informers.pods.subscribe((change, origin) => onPod(deps, change, priorityOf(origin)));
  informers.tools.subscribe((change) => onTool(deps, change));
  for (const child of informers.children) {
    child.subscribe((change, origin) => onChild(deps, child.type.plural, change, priorityOf(origin)));
  }
}

function priorityOf(origin: ChangeSource): Priority {
  return origin === 'change' ? PRIORITY.normal : PRIORITY.resync;
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** A pure status change must not requeue its own object. */
function isOnlyStatus(change: Change<KubeObject>): boolean {
  return change.type === 'updated' && change.before.metadata.generation === change.object.metadata.generation;
}

function onAgent(deps: RouteDeps, change: Change<StoredAgent>, priority: Priority): void {
  const { informers, queues, onAgentDeleted } = deps;
  const { object } = change;
  if (isOnlyStatus(change) && !deps.isExternalAgentStatus(object)) return;
  if (change.type === 'added' && priority === PRIORITY.normal) deps.onAgentCreated(object);
  queues.agents.add(keyOf(object), priority);
  queues.schedules.add(keyOf(object), priority);
  const before = change.type === 'updated' ? policyKeyOf(change.before) : undefined;
  if (change.type === 'updated' && before === policyKeyOf(object)) return;
  for (const key of new Set([policyKeyOf(object), before ?? policyKeyOf(object)])) {
    queues.policies.addAfter(key, COUNT_DELAY_MS, priority);
    if (change.type === 'added') continue;
    // An agent left the policy, so another agent may now fit its quota.
    for (const other of informers.agents.cache.byIndex(INDEX.overQuota, key)) queues.agents.add(keyOf(other));
  }
  if (change.type === 'deleted') onAgentDeleted(object);
}

function onPolicy(deps: RouteDeps, change: Change<StoredPolicy>, priority: Priority): void {
  const { informers, queues, onPolicyDeleted } = deps;
  const key = keyOf(change.object);
  if (isOnlyStatus(change)) {
    if (deps.isExternalPolicyStatus(change.object)) queues.policies.add(key, priority);
    return;
  }
  if (change.type === 'deleted') onPolicyDeleted(change.object);
  queues.policies.add(key, priority);
  const agents = informers.agents.cache.byIndex(INDEX.policy, key);
  for (const agent of agents) {
    queues.agents.add(keyOf(agent), priority);
    queues.schedules.add(keyOf(agent), priority);
  }
  // The quotas of the policy are part of the ResourceQuota of the namespace.
  queues.namespaces.add(change.object.metadata.namespace, priority);
}

/** The records of an agent are asked about the tools that it has, and its deactivated tools return when their tests passed. */
function onTool({ informers, queues }: RouteDeps, change: Change<StoredTool>): void {
  const { cache } = informers.agents;
  const { metadata, facts } = change.object;
  const { namespace } = metadata;
  const before = change.type === 'updated' ? change.before : undefined;
  const isServiceChange = before === undefined || before.status?.active !== change.object.status?.active;
  if (!isServiceChange && verifiedAt(before) === verifiedAt(change.object)) return;
  const own = facts.agent === undefined ? [] : [cache.get(namespace, facts.agent)];
  const lost = cache.byIndex(INDEX.deactivated, `${namespace}/${facts.digest}`);
  const all = facts.tier === 'Shared' && isServiceChange ? cache.byIndex(INDEX.namespace, namespace) : [];
  for (const agent of new Set([...own, ...lost, ...all]))
    if (agent !== undefined) queues.agents.add(keyOf(agent), PRIORITY.resync);
}

function verifiedAt({ status }: StoredTool): string | undefined {
  return status?.verification?.verifiedAt;
}

function onPod({ queues, pool, quotaReleases }: RouteDeps, change: Change<Pod>, priority: Priority): void {
  const pods = change.type === 'updated' ? [change.before, change.object] : [change.object];
  pool.onObserved(change.object.metadata.uid, change.type === 'deleted');
  if (change.type === 'updated' && podFingerprint(change.before) === podFingerprint(change.object)) return;
  if (change.type === 'deleted') quotaReleases.onDeleted(change.object);
  for (const pod of pods) {
    const owner = ownerKeyOf(pod);
    if (owner !== undefined) queues.agents.add(owner, priority);
    const { metadata } = pod;
    const className = metadata.labels?.[LABELS.sandboxClass];
    const isWarm = metadata.labels?.[LABELS.agentUid] === undefined && className !== undefined;
    if (isWarm) queues.pools.add(`${metadata.namespace}/${className}`, priority);
  }
}

/** Also an added object is compared: a user may have created it under the name first. */
function onChild(
  { queues, onChildDeleted }: RouteDeps,
  plural: string,
  change: Change<PlainObject>,
  priority: Priority,
): void {
  const { namespace } = change.object.metadata;
  if (namespace === undefined) return;
  if (change.type === 'deleted') onChildDeleted(plural, change.object);
  queues.namespaces.add(namespace, priority);
}

/** What the requeue functions read and fill. */
interface RequeueDeps {
  readonly config: Pick<OperatorConfig, 'sandboxClasses'>;
  readonly agents: Cache<StoredAgent>;
  readonly queues: Queues;
}

/** Namespaces with agents or with a warm pool. */
export function activeNamespaces({ config, agents }: Pick<RequeueDeps, 'config' | 'agents'>): string[] {
  const withAgents = agents.list().map(({ metadata }) => metadata.namespace);
  return [...new Set([...withAgents, ...pooledNamespaces(config)])];
}

/** The key of the queue of verifiers. */
export const VERIFIERS_KEY = 'verifiers';

/** Promotions that wait for a pod look again, and the operator replaces the pod that ended. */
export function routeVerifiers({
  informers,
  queues,
  verifierPods,
}: Pick<RouteDeps, 'informers'> & { readonly queues: AllQueues; readonly verifierPods: VerifierPods }): void {
  informers.verifiers.subscribe((change, origin) => {
    verifierPods.onObserved(change.object.metadata.uid);
    if (change.type === 'updated' && podFingerprint(change.before) === podFingerprint(change.object)) return;
    queues.verifiers.add(VERIFIERS_KEY, priorityOf(origin));
    for (const key of verifierPods.waiting) (isToolKey(key) ? queues.tools : queues.promotions).add(key);
  });
}

/** Keys of tools are `namespace/name`; those of promotions have three parts. */
function isToolKey(key: string): boolean {
  return key.split('/').length === 2;
}

/** Has the namespace agents or a warm pool? Reads only the agents of the namespace. */
export function isActiveNamespace(
  { config, agents }: Pick<RequeueDeps, 'config' | 'agents'>,
  namespace: string,
): boolean {
  return agents.byIndex(INDEX.namespace, namespace).length > 0 || pooledNamespaces(config).includes(namespace);
}

function pooledNamespaces({ sandboxClasses }: RequeueDeps['config']): string[] {
  return sandboxClasses.flatMap(({ pool = [] }) => pool.map(({ namespace }) => namespace));
}

/** Requeues the namespace and all its agents. Reads no agent of another namespace. */
export function requeueNamespace({ agents, queues }: Pick<RequeueDeps, 'agents' | 'queues'>, namespace: string): void {
  queues.namespaces.add(namespace);
  for (const agent of agents.byIndex(INDEX.namespace, namespace)) queues.agents.add(keyOf(agent), PRIORITY.resync);
}

/** Requeues every active namespace and all its agents. */
export function requeueAllNamespaces(deps: RequeueDeps): void {
  for (const namespace of activeNamespaces(deps)) requeueNamespace(deps, namespace);
}

/** Requeues the warm pools of the configuration, because no watch event announces them. */
export function requeuePools({ config, queues }: Pick<RequeueDeps, 'config' | 'queues'>): void {
  for (const { name, pool = [] } of config.sandboxClasses) {
    for (const { namespace } of pool) queues.pools.add(`${namespace}/${name}`, PRIORITY.resync);
  }
}
