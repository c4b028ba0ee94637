import { matches } from './selector.ts';
import type { Namespace, Peer, Pod } from './types.ts';

export type Direction = 'Ingress' | 'Egress';

/** The context in which a rule of a policy is resolved. */
export interface Target {
  readonly direction: Direction;
  /** The namespace of the policy. */
  readonly namespace: string;
  /** The pod that the policy selects. */
  readonly pod: Pod;
  /** All pods that have addresses. */
  readonly pods: readonly Pod[];
  readonly namespaces: readonly Namespace[];
}

/** The nftables expression for the address of the peer. */
export function peerAddress(direction: Direction): string {
  return direction === 'Egress' ? 'ip daddr' : 'ip saddr';
}

/** One nftables expression per way in which a peer's address can match; '' matches every address. An empty or absent list means all peers. */
export function peersOf(target: Target, peers: readonly Peer[] | undefined): string[] {
  if (peers === undefined || peers.length === 0) return [''];
  const side = peerAddress(target.direction);
  const selected = peers.flatMap((peer) => selectedBy(target, peer)).map(addressOf);
  const pods = selected.length === 0 ? [] : [`${side} { ${[...new Set(selected)].join(', ')} }`];
  return [...pods, ...peers.flatMap((peer) => blockOf(side, peer))];
}

/** The pods among the peers that have a port with this name, with its number. */
export function podsWithPort(
  target: Target,
  peers: readonly Peer[] | undefined,
  name: string,
  protocol: string | undefined,
): { ip: string; number: number }[] {
  const all = peers === undefined || peers.length === 0;
  const pods = all ? target.pods : peers.flatMap((peer) => selectedBy(target, peer));
  return pods.flatMap((pod) => {
    const number = portOf(pod, name, protocol);
    return number === undefined ? [] : [{ ip: addressOf(pod), number }];
  });
}

/** The number of a pod's port with this name and protocol. */
export function portOf({ spec }: Pod, name: string, protocol = 'TCP'): number | undefined {
  const ports = [...spec.containers, ...(spec.initContainers ?? [])].flatMap((container) => container.ports ?? []);
  return ports.find((port) => port.name === name && (port.protocol ?? 'TCP') === protocol)?.containerPort;
}

function addressOf({ status }: Pod): string {
  return status?.podIP ?? '';
}

function selectedBy({ namespace, pods, namespaces }: Target, { podSelector, namespaceSelector, ipBlock }: Peer): Pod[] {
  if (ipBlock !== undefined) return [];
  const inNamespace = (name: string) => {
    if (namespaceSelector === undefined) return name === namespace;
    const found = namespaces.find(({ metadata }) => metadata.name === name);
    return found !== undefined && matches(namespaceSelector, found.metadata.labels);
  };
  return pods.filter(
    ({ metadata }) => inNamespace(metadata.namespace ?? '') && matches(podSelector ?? {}, metadata.labels),
  );
}

/** The node has no IPv6, so an IPv6 block matches nothing. */
function blockOf(side: string, { ipBlock }: Peer): string[] {
  if (ipBlock === undefined || ipBlock.cidr.includes(':')) return [];
  const except = (ipBlock.except ?? []).filter((cidr) => !cidr.includes(':'));
  const outside = except.length === 0 ? '' : ` ${side} != { ${except.join(', ')} }`;
  const inside = ipBlock.cidr.endsWith('/0') ? 'meta nfproto ipv4' : `${side} ${ipBlock.cidr}`;
  return [inside + outside];
}
