import { LABELS } from '../api/cluster.ts';
import type { KubeObject } from '../kube/informer/store.ts';

/** The part of an agent pod that the store keeps. */
export interface AgentPod extends KubeObject {
  readonly status?: {
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip?: string }[];
    readonly phase?: string;
  };
}

/** Prunes an agent pod to the fields that this module reads; the `transform` of the pod reflector. */
export function prunePod({ metadata, status }: AgentPod): AgentPod {
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata;
  const agentUid = metadata.labels?.[LABELS.agentUid];
  const owners = metadata.ownerReferences?.filter(({ controller }) => controller === true) ?? [];
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(agentUid === undefined ? {} : { labels: { [LABELS.agentUid]: agentUid } }),
      ...(owners.length === 0 ? {} : { ownerReferences: owners }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    ...(status === undefined ? {} : { status: prunedStatus(status) }),
  };
}

function prunedStatus({ podIP, podIPs, phase }: NonNullable<AgentPod['status']>): NonNullable<AgentPod['status']> {
  return {
    ...(podIP === undefined ? {} : { podIP }),
    ...(podIPs === undefined ? {} : { podIPs }),
    ...(phase === undefined ? {} : { phase }),
  };
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

/** The Agent that the pod names: by its label and its controller, which must agree. */
export function agentUidOf({ metadata }: AgentPod): string | undefined {
  const uid = metadata.labels?.[LABELS.agentUid];
  const isOwner = metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid);
  return isOwner === true ? uid : undefined;
}

/** Is it neither terminating nor ended? */
export function isLiving(pod: AgentPod): boolean {
  return pod.metadata.deletionTimestamp === undefined && !hasEnded(pod);
}

export function hasEnded({ status }: AgentPod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

/** Everything that a binding depends on: two versions of a pod with the same fingerprint have the same binding. */
export function bindingFingerprint(pod: AgentPod): string {
  return JSON.stringify([pod.metadata.uid, agentUidOf(pod), isLiving(pod), hasEnded(pod)]);
}
