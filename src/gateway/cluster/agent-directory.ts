import { isDeepStrictEqual } from 'node:util';
import { LABELS, POD_PATHS } from '../../api/cluster.ts';
import { DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { type AgentPod, agentUidOf, bindingFingerprint } from '../../identity/agent-pod.ts';
import type { PodBindings } from '../../identity/pod-bindings.ts';
import type { Change, Store } from '../../kube/informer/store.ts';
import { TemperError } from '../../lib/errors.ts';
import { bindingOf, type EffectiveLevels, effectiveLevels, lowerLevels } from '../../policy/trust/effective.ts';
import type { Decider, PolicySnapshot } from '../../policy/types.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory, DeciderOptions } from '../deps.ts';
import { ChangeNotifier } from './change-notifier.ts';
import { DeciderCache } from './decider-cache.ts';
import { hasSameSpec } from './prune.ts';

const BY_UID = 'gateway.uid';
const BY_NAMESPACE = 'gateway.namespace';
const BY_PARENT = 'gateway.parent';
/** More generations than a policy can permit: labels are written by users too. */
const MAX_ANCESTORS = 8;

/**
 * Agents, their pods and policies from informer caches. The owner of the stores calls `agentChanged`, `podChanged` and `policyChanged` after
 * each change.
 */
export class WatchedAgentDirectory implements AgentDirectory {
  readonly bindings: PodBindings<Agent>;
  readonly #agents: Store<Agent>;
  readonly #policies: Store<TrustPolicy>;
  readonly #topics = new ChangeNotifier();
  readonly #deciders = new DeciderCache();

  /** Adds indexes to the store of agents. */
  constructor(agents: Store<Agent>, policies: Store<TrustPolicy>, bindings: PodBindings<Agent>) {
    this.bindings = bindings;
    this.#agents = agents;
    this.#policies = policies;
    agents.addIndex(BY_UID, ({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid]));
    agents.addIndex(BY_NAMESPACE, ({ metadata }) => [metadata.namespace ?? '']);
    agents.addIndex(BY_PARENT, (agent) => [parentUidOf(agent) ?? []].flat());
  }

  agentChanged(change: Change<Agent>): void {
    if (change.type === 'updated' && isSameAgent(change.before, change.object)) return;
    const versions = change.type === 'updated' ? [change.before, change.object] : [change.object];
    this.#topics.notify([
      agentTopic(change.object),
      ...versions.flatMap(({ status }) => (status?.pod === undefined ? [] : podTopic(status.pod.uid))),
      ...this.bindings.podUidsOf(change.object.metadata.uid ?? '').map(podTopic),
    ]);
  }

  /** A written status changes nothing for the agents, and would wake the long polls of all of them. */
  policyChanged(change: Change<TrustPolicy>): void {
    const { metadata } = change.object;
    if (change.type === 'updated' && hasSameSpec(change.before, change.object)) return;
    this.#topics.notify([policyTopic(metadata.namespace, metadata.name)]);
  }

  /** Wakes the long polls of the agents of the namespace. */
  toolsChanged(namespace: string): void {
    this.#topics.notify([toolsTopic(namespace)]);
  }

  agent(namespace: string, name: string): AgentState | undefined {
    return this.#state(this.#agents.get(`${namespace}/${name}`));
  }

  byUid(agentUid: string): AgentState | undefined {
    return this.#state(this.#agents.byIndex(BY_UID, agentUid)[0]);
  }

  agents(namespace: string): AgentState[] {
    return this.#agents.byIndex(BY_NAMESPACE, namespace).flatMap((agent) => this.#state(agent) ?? []);
  }

  children(agentUid: string): AgentState[] {
    return this.#agents.byIndex(BY_PARENT, agentUid).flatMap((agent) => this.#state(agent) ?? []);
  }

  childrenUnder(namespace: string, policy: string): number {
    const all = this.#agents.byIndex(BY_NAMESPACE, namespace);
    return all.filter((agent) => parentUidOf(agent) !== undefined && agent.spec.trustPolicyRef.name === policy).length;
  }

  policy(namespace: string, name: string): TrustPolicy | undefined {
    return this.#policies.get(`${namespace}/${name}`);
  }

  snapshot(
    { agent, policy, level, categoryLevels, ancestors }: AgentState,
    tainted: boolean,
    hasPrivateData = false,
  ): PolicySnapshot {
    const { name, namespace = '' } = agent.metadata;
    if (policy === undefined) {
      const { name: missing } = agent.spec.trustPolicyRef;
      throw new TemperError(
        'TEMPER_POLICY_DENIED',
        `TrustPolicy "${missing}" of agent "${name}" does not exist, so nothing is allowed; create it`,
      );
    }
    return {
      agent: { name, namespace, spec: agent.spec },
      policy: { name: policy.metadata.name, spec: policy.spec },
      level,
      categoryLevels,
      generation: ancestors.length,
      tainted,
      hasPrivateData,
      workspace: POD_PATHS.workspace,
    };
  }

  decider(state: AgentState, tainted: boolean, options: DeciderOptions = {}): Decider {
    const { model = state.agent.spec.model, hasPrivateData } = options;
    return this.#deciders.get(state.agent, state.policy, this.snapshot(state, tainted, hasPrivateData), model);
  }

  changed(of: { podUid?: string; state?: AgentState | undefined }, signal: AbortSignal): Promise<void> {
    const { podUid, state } = of;
    const topics = podUid === undefined ? [] : [podTopic(podUid)];
    for (const { agent } of state === undefined ? [] : [state, ...state.ancestors]) {
      topics.push(agentTopic(agent), policyTopic(agent.metadata.namespace, agent.spec.trustPolicyRef.name));
    }
    if (state !== undefined) topics.push(toolsTopic(state.agent.metadata.namespace ?? ''));
    return this.#topics.wait(topics, signal);
  }

  #parent({ metadata }: Agent, uid: string, generationsLeft: number): AgentState | undefined {
    const found = this.#agents.byIndex(BY_UID, uid)[0];
    if (found === undefined || generationsLeft === 0 || found.metadata.namespace !== metadata.namespace)
      return undefined;
    return this.#state(found, generationsLeft - 1);
  }

  /** A new, terminating or deleted pod can change the binding of another pod of the same agent. */
  podChanged(change: Change<AgentPod>): void {
    const versions = change.type === 'updated' ? [change.before, change.object] : [change.object];
    const [first, second = first] = versions.map(bindingFingerprint);
    if (change.type === 'updated' && first === second) return;
    const agentUids = new Set(versions.flatMap((pod) => agentUidOf(pod) ?? []));
    const others = [...agentUids].flatMap((uid) => this.bindings.podUidsOf(uid));
    const named = [...agentUids].flatMap((uid) => this.#agents.byIndex(BY_UID, uid));
    const podUids = new Set([...others, change.object.metadata.uid ?? '']);
    this.#topics.notify([...named.map(agentTopic), ...[...podUids].map(podTopic)]);
  }

  #state(agent: Agent | undefined, generationsLeft = MAX_ANCESTORS): AgentState | undefined {
    const uid = agent?.metadata.uid;
    if (agent === undefined || uid === undefined) return undefined;
    const policy = this.policy(agent.metadata.namespace ?? '', agent.spec.trustPolicyRef.name);
    const own = levelsOf(agent, policy);
    const parentUid = parentUidOf(agent);
    const parent = parentUid === undefined ? undefined : this.#parent(agent, parentUid, generationsLeft);
    const { level, categories: categoryLevels } = parent === undefined ? own : levelsOfChild(own, policy, parent);
    // A child whose parent is gone waits for the garbage collector.
    const isOrphan = parentUid !== undefined && parent === undefined;
    return {
      uid,
      agent,
      policy,
      level,
      categoryLevels,
      suspended: isOrphan || parent?.suspended === true || isSuspended(agent, policy),
      ancestors: parent === undefined ? [] : [parent, ...parent.ancestors],
      podUid: this.bindings.podOf(agent)?.metadata.uid,
    };
  }
}

function isSuspended(agent: Agent, policy: TrustPolicy | undefined): boolean {
  return agent.spec.suspend === true || policy?.spec.suspend === true;
}

function parentUidOf({ metadata }: Agent): string | undefined {
  return metadata.labels?.[LABELS.parentAgent];
}

/** Under the same policy a child has at most the levels of its parent. A copy of a template under another policy has its own. */
function levelsOfChild(own: EffectiveLevels, policy: TrustPolicy | undefined, parent: AgentState): EffectiveLevels {
  if (policy === undefined || policy.metadata.uid !== parent.policy?.metadata.uid) return own;
  return lowerLevels(own, { level: parent.level, categories: parent.categoryLevels }, policy.spec);
}

/** Without a policy nothing is allowed, whatever the level. */
function levelsOf(agent: Agent, policy: TrustPolicy | undefined): EffectiveLevels {
  if (policy === undefined) return { level: DEFAULT_LEVELS.initial, categories: {} };
  return effectiveLevels(agent.status?.trust, bindingOf(agent, policy), policy.spec);
}

/** Only the queue length, the usage or the conditions differ. */
function isSameAgent(before: Agent, after: Agent): boolean {
  const [{ pod: oldPod, level: oldLevel, trust: oldTrust } = {}, { pod, level, trust } = {}] = [
    before.status,
    after.status,
  ];
  const isSameTools = isDeepStrictEqual(before.status?.deactivatedTools, after.status?.deactivatedTools);
  const isSamePod = oldPod?.uid === pod?.uid && oldPod?.name === pod?.name;
  const isSameTrust = oldLevel === level && isDeepStrictEqual(oldTrust, trust);
  return hasSameSpec(before, after) && isSamePod && isSameTrust && isSameTools;
}

function agentTopic({ metadata: { namespace = '', name } }: Agent): string {
  return `agent/${namespace}/${name}`;
}

function policyTopic(namespace: string | undefined, name: string): string {
  return `policy/${namespace ?? ''}/${name}`;
}

function toolsTopic(namespace: string): string {
  return `tools/${namespace}`;
}

function podTopic(podUid: string): string {
  return `pod/${podUid}`;
}
