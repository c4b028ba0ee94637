import type { KubeObject, Store } from '../kube/informer/store.ts';
import { type AgentPod, agentUidOf, hasEnded, isLiving } from './agent-pod.ts';

/** The part of an Agent that confirms its pod. */
export interface BoundAgent extends KubeObject {
  readonly status?: { readonly pod?: { readonly name: string; readonly uid: string } };
}

/** Which Agent a pod works for. In a conflict it works for none. */
export type PodBinding<A> =
  | { readonly kind: 'bound'; readonly agent: A }
  | { readonly kind: 'unbound' }
  | { readonly kind: 'conflict'; readonly agents: readonly A[]; readonly message: string };

const UNBOUND = { kind: 'unbound' } as const;
const BY_POD = 'identity.pod';
const BY_AGENT = 'identity.agent';
const BY_UID = 'identity.uid';

/**
 * Maps pods to Agents, from the informer caches. A pod names its Agent itself, by the label and the owner reference that the admission
 * policies reserve to the operator; `status.pod` of the Agent confirms the pod, some time later. At most one pod works for an Agent:
 *
 *     status.pod names a living pod of the Agent   that pod
 *     otherwise, one living pod                    that pod
 *     otherwise, several living pods               none of them: a conflict, until the operator has deleted the others
 *     otherwise                                    the terminating pod that status.pod names, which completes its message
 */
export class PodBindings<A extends BoundAgent> {
  readonly #agents: Store<A>;
  readonly #pods: Store<AgentPod>;

  /** Adds indexes to both stores. */
  constructor(agents: Store<A>, pods: Store<AgentPod>) {
    this.#agents = agents;
    this.#pods = pods;
    agents.addIndex(BY_POD, ({ status }) => (status?.pod === undefined ? [] : [status.pod.uid]));
    agents.addIndex(BY_UID, ({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid]));
    pods.addIndex(BY_UID, ({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid]));
    pods.addIndex(BY_AGENT, (pod) => [agentUidOf(pod) ?? []].flat());
  }

  pod(podUid: string): AgentPod | undefined {
    return this.#pods.byIndex(BY_UID, podUid)[0];
  }

  bindingOf(podUid: string): PodBinding<A> {
    const agents = this.#claimants(podUid);
    const [agent, ...others] = agents;
    if (others.length > 0) return { kind: 'conflict', agents, message: 'more than one agent names this pod' };
    if (agent === undefined) return UNBOUND;
    const working = this.#workingPods(agent);
    if (!working.some(({ metadata }) => metadata.uid === podUid)) return UNBOUND;
    if (working.length > 1) return { kind: 'conflict', agents, message: 'the agent has more than one living pod' };
    return { kind: 'bound', agent };
  }

  /** The pod that works for the Agent. */
  podOf(agent: A): AgentPod | undefined {
    const [pod, ...others] = this.#workingPods(agent);
    return others.length > 0 ? undefined : pod;
  }

  /** The UIDs of all pods that name the Agent, in any phase. */
  podUidsOf(agentUid: string): string[] {
    return this.#pods.byIndex(BY_AGENT, agentUid).flatMap(({ metadata }) => metadata.uid ?? []);
  }

  /** The Agents whose `status.pod` names the pod, in any namespace, and the Agent that the pod names. More than one: an attack or a defect. */
  #claimants(podUid: string): A[] {
    const confirmed = this.#agents.byIndex(BY_POD, podUid);
    const pod = this.pod(podUid);
    const agentUid = pod === undefined ? undefined : agentUidOf(pod);
    const named = agentUid === undefined ? [] : this.#agents.byIndex(BY_UID, agentUid);
    return [...confirmed, ...named.filter((agent) => !confirmed.includes(agent))];
  }

  /** One pod, or none, or in a conflict all its living pods. */
  #workingPods(agent: A): AgentPod[] {
    const { uid = '', namespace } = agent.metadata;
    const own = this.#pods.byIndex(BY_AGENT, uid).filter(({ metadata }) => metadata.namespace === namespace);
    const wanted = agent.status?.pod;
    const isConfirmed = ({ metadata }: AgentPod) => metadata.uid === wanted?.uid && metadata.name === wanted?.name;
    const living = own.filter(isLiving);
    const confirmed = living.filter(isConfirmed);
    if (confirmed.length > 0) return confirmed;
    return living.length > 0 ? living : own.filter((pod) => isConfirmed(pod) && !hasEnded(pod));
  }
}
