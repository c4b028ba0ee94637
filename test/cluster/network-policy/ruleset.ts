import { type Direction, peerAddress, peersOf, podsWithPort, portOf, type Target } from './peers.ts';
import { matches } from './selector.ts';
import type { NetworkPolicy, Peer, Pod, PolicyPort, PolicyInputs } from './types.ts';

interface Chain {
  readonly name: string;
  readonly ip: string;
  readonly rules: readonly string[];
}

const TABLE = 'table inet temper-network-policy';

/**
 * The nftables ruleset that enforces the policies on a node. Apply it as one transaction: it replaces the previous ruleset.
 *
 * A packet passes the chain of the sending pod, then the chain of the receiving pod. Each chain returns for allowed packets and ends with
 * drop. A pod without a policy for a direction has no chain for it. Packets from the node itself are not filtered, so kubelet probes pass;
 * packets from a pod to the node are filtered.
 */
export function ruleset(inputs: PolicyInputs): string {
  const pods = inputs.pods.filter(isAddressed);
  const chains = (direction: Direction) => pods.flatMap((pod) => chainOf(direction, pod, pods, inputs));
  const egress = chains('Egress');
  const ingress = chains('Ingress');
  return [
    // Declaring the table first makes `delete table` succeed when it does not exist yet.
    TABLE,
    `delete ${TABLE}`,
    `${TABLE} {`,
    ...[...egress, ...ingress].flatMap(({ name, rules }) => [`chain ${name} {`, ...rules, 'drop', '}']),
    'chain pods {',
    'ct state established,related accept',
    ...dispatch('saddr', egress),
    ...dispatch('daddr', ingress),
    '}',
    'chain forward { type filter hook forward priority filter; policy accept; jump pods; }',
    'chain input { type filter hook input priority filter; policy accept; jump pods; }',
    '}',
    '',
  ].join('\n');
}

function isAddressed({ spec, status }: Pod): boolean {
  const hasEnded = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  return spec.hostNetwork !== true && !hasEnded && (status?.podIP ?? '') !== '';
}

function dispatch(side: 'saddr' | 'daddr', chains: readonly Chain[]): string[] {
  if (chains.length === 0) return [];
  return [`ip ${side} vmap { ${chains.map(({ ip, name }) => `${ip} : jump ${name}`).join(', ')} }`];
}

function chainOf(
  direction: Direction,
  pod: Pod,
  pods: readonly Pod[],
  { namespaces, policies }: PolicyInputs,
): Chain[] {
  const binding = policies.filter((policy) => isolates(policy, direction, pod));
  if (binding.length === 0) return [];
  const ip = pod.status?.podIP ?? '';
  const context = { direction, pod, pods, namespaces };
  const rules = binding.flatMap((policy) =>
    entriesOf(policy, direction).flatMap(({ peers, ports }) =>
      portsOf(ports).flatMap((port) =>
        rulesOf({ ...context, namespace: policy.metadata.namespace ?? '' }, peers, port),
      ),
    ),
  );
  // A pod can always reach itself.
  const itself = `${peerAddress(direction)} ${ip} return`;
  const name = `${direction.toLowerCase()}_${ip.replaceAll('.', '_')}`;
  return [{ name, ip, rules: [itself, ...new Set(rules)] }];
}

function isolates({ metadata, spec }: NetworkPolicy, direction: Direction, pod: Pod): boolean {
  const types = spec.policyTypes ?? (spec.egress === undefined ? ['Ingress'] : ['Ingress', 'Egress']);
  return (
    metadata.namespace === pod.metadata.namespace &&
    types.includes(direction) &&
    matches(spec.podSelector ?? {}, pod.metadata.labels)
  );
}

function entriesOf({ spec }: NetworkPolicy, direction: Direction) {
  if (direction === 'Egress') return (spec.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }));
  return (spec.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports }));
}

/** An empty or absent list means all ports. */
function portsOf(ports: readonly PolicyPort[] | undefined): readonly (PolicyPort | undefined)[] {
  return ports === undefined || ports.length === 0 ? [undefined] : ports;
}

function rulesOf(target: Target, peers: readonly Peer[] | undefined, port: PolicyPort | undefined): string[] {
  const name = typeof port?.port === 'string' ? port.port : undefined;
  const allowed = (address: string, ports: string) => `${address} ${ports} return`.replace(/ +/g, ' ').trim();
  if (name !== undefined && target.direction === 'Egress') {
    // A port name can have a different number in each receiving pod.
    const receivers = podsWithPort(target, peers, name, port?.protocol);
    return receivers.map(({ ip, number }) => allowed(`ip daddr ${ip}`, portMatch(port, number)));
  }
  const number = name === undefined ? port?.port : portOf(target.pod, name, port?.protocol);
  if (name !== undefined && number === undefined) return [];
  return peersOf(target, peers).map((address) => allowed(address, portMatch(port, number)));
}

/** Empty for all ports of all protocols. */
function portMatch(port: PolicyPort | undefined, number: number | string | undefined): string {
  if (port === undefined) return '';
  const protocol = (port.protocol ?? 'TCP').toLowerCase();
  if (number === undefined) return `meta l4proto ${protocol}`;
  return `${protocol} dport ${number}${port.endPort === undefined ? '' : `-${port.endPort}`}`;
}
