import type { KubeObject, Store } from '../kube/informer/store.ts';

/** The part of an Agent that names its pod. */
export interface BoundAgent extends KubeObject {
  readonly status?: { readonly pod?: { readonly name: string; readonly uid: string } };
}

/** The part of an agent pod that the store keeps. */
export interface AgentPod extends KubeObject {
  readonly status?: { readonly podIP?: string; readonly podIPs?: readonly { readonly ip?: string }[] };
}

/** Prunes an agent pod to the fields that this module reads; the `transform` of the pod reflector. */
export function prunePod({ metadata, status }: AgentPod): AgentPod {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    ...(status === undefined ? {} : { status: addressesOnly(status) }),
  };
}

function addressesOnly({ podIP, podIPs }: NonNullable<AgentPod['status']>): NonNullable<AgentPod['status']> {
  return { ...(podIP === undefined ? {} : { podIP }), ...(podIPs === undefined ? {} : { podIPs }) };
}

const BY_POD = 'identity.pod';
const BY_UID = 'identity.uid';

/** Maps pods to Agents, from the informer caches: pods with the label of agent pods, and `status.pod` of Agents. */
export class PodBindings<A extends BoundAgent> {
  readonly #agents: Store<A>;
  readonly #pods: Store<AgentPod>;

  /** Adds an index to each of the stores. */
  constructor(agents: Store<A>, pods: Store<AgentPod>) {
    this.#agents = agents;
    this.#pods = pods;
    agents.addIndex(BY_POD, ({ status }) => (status?.pod === undefined ? [] : [status.pod.uid]));
    pods.addIndex(BY_UID, ({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid]));
  }

  pod(podUid: string): AgentPod | undefined {
    return this.#pods.byIndex(BY_UID, podUid)[0];
  }

  /** Every Agent, in any namespace, whose `status.pod` names the pod. More than one means an attack or a defect. */
  agentsBoundTo(podUid: string): A[] {
    return this.#agents.byIndex(BY_POD, podUid);
  }
}

/** The addresses of the pod, normalised by `normalAddress`. */
export function addressesOf({ status }: AgentPod): string[] {
  const addresses = [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)];
  return addresses.flatMap((address) => (address === undefined || address === '' ? [] : normalAddress(address)));
}

/** Normalises an address: an IPv4-mapped IPv6 address becomes IPv4; IPv6 is in lower case, without a zone. */
export function normalAddress(address: string): string {
  const plain = address.toLowerCase().replace(/%.*$/, '');
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(plain);
  return mapped?.[1] ?? plain;
}
