import type { KubeObject, Store } from '../kube/store.ts';

/** What of an Agent says which pod it is. */
export interface BoundAgent extends KubeObject {
  readonly status?: { readonly pod?: { readonly name: string; readonly uid: string } };
}

/** What is kept of an agent pod. */
export interface AgentPod extends KubeObject {
  readonly status?: { readonly podIP?: string; readonly podIPs?: readonly { readonly ip?: string }[] };
}

/** An agent pod without what nobody here reads; for the reflector of pods. */
export function slimPod({ metadata, status }: AgentPod): AgentPod {
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

/** Whose pod is it? As the API server last said: pods with the label of agent pods, and `status.pod` of Agents. */
export class Bindings<A extends BoundAgent> {
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

  /** Every Agent that names the pod as its own, of any namespace. One is right; more are an attack or a defect. */
  agentsOf(podUid: string): A[] {
    return this.#agents.byIndex(BY_POD, podUid);
  }
}

/** Addresses of the pod, in the form `normalAddress` gives. */
export function addressesOf({ status }: AgentPod): string[] {
  const addresses = [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)];
  return addresses.flatMap((address) => (address === undefined || address === '' ? [] : normalAddress(address)));
}

/** One text for one address: IPv4 in IPv6 as IPv4, IPv6 without a zone, in lower case. */
export function normalAddress(address: string): string {
  const plain = address.toLowerCase().replace(/%.*$/, '');
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(plain);
  return mapped?.[1] ?? plain;
}
