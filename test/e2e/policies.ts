import type { Peer, PolicyPort } from '../cluster/network-policy/types.ts';

/** A pod of the truth table, `<namespace>/<name>`; its label `app` is the name, its namespace's label `team` the namespace. */
export type PodName = 'a/client' | 'a/other' | 'a/server' | 'b/client' | 'b/other';

export interface Probe {
  readonly from: PodName;
  readonly to: PodName;
  readonly port: number;
}

export interface Scenario {
  readonly name: string;
  /** Given the pods' addresses; each with its namespace. */
  readonly policies: (ip: Record<PodName, string>) => readonly { namespace: string; spec: object }[];
  readonly open: (probe: Probe) => boolean;
}

const app = (name: string) => ({ podSelector: { matchLabels: { app: name } } });
const team = (name: string) => ({ namespaceSelector: { matchLabels: { team: name } } });
const server = { podSelector: { matchLabels: { app: 'server' } } };

function ingress(from: readonly Peer[] | undefined, ports?: readonly PolicyPort[]) {
  return { namespace: 'a', spec: { ...server, policyTypes: ['Ingress'], ingress: [{ from, ports }] } };
}

function egressOfClient(egress: readonly object[]) {
  return { namespace: 'a', spec: { ...app('client'), policyTypes: ['Egress'], egress } };
}

/** Open to a/server from these alone; what leads elsewhere stays open. */
const onlyFrom =
  (...names: PodName[]) =>
  ({ from, to }: Probe) =>
    to !== 'a/server' || names.includes(from);

const onlyOn =
  (...ports: number[]) =>
  ({ to, port }: Probe) =>
    to !== 'a/server' || ports.includes(port);

export const SCENARIOS: readonly Scenario[] = [
  { name: 'no policy: everything passes', policies: () => [], open: () => true },
  {
    name: 'a policy without rules closes what it selects, and nothing else',
    policies: () => [{ namespace: 'a', spec: { ...server, policyTypes: ['Ingress'] } }],
    open: onlyFrom(),
  },
  {
    name: 'a pod selector means pods of the policy’s own namespace',
    policies: () => [ingress([app('client')])],
    open: onlyFrom('a/client'),
  },
  {
    name: 'a namespace selector means all pods of those namespaces',
    policies: () => [ingress([team('b')])],
    open: onlyFrom('b/client', 'b/other'),
  },
  {
    name: 'both selectors in one entry must match',
    policies: () => [ingress([{ ...team('b'), ...app('client') }])],
    open: onlyFrom('b/client'),
  },
  {
    name: 'of several entries one is enough',
    policies: () => [ingress([team('b'), app('client')])],
    open: onlyFrom('a/client', 'b/client', 'b/other'),
  },
  {
    name: 'an address block has exceptions',
    policies: (ip) => [ingress([{ ipBlock: { cidr: '10.244.0.0/16', except: [`${ip['a/client']}/32`] } }])],
    open: onlyFrom('a/other', 'b/client', 'b/other'),
  },
  {
    name: 'a port by number',
    policies: () => [ingress(undefined, [{ port: 8081 }])],
    open: onlyOn(8081),
  },
  {
    name: 'a range of ports',
    policies: () => [ingress(undefined, [{ port: 8080, endPort: 8081 }])],
    open: onlyOn(8080, 8081),
  },
  {
    name: 'a port by name',
    policies: () => [ingress(undefined, [{ port: 'web' }])],
    open: onlyOn(8080),
  },
  {
    name: 'policies add up',
    policies: () => [ingress(undefined, [{ port: 8080 }]), ingress([team('b')], [{ port: 8082 }])],
    open: (probe) => onlyOn(8080)(probe) || (probe.from.startsWith('b/') && probe.port === 8082),
  },
  {
    name: 'egress: a policy without rules lets nothing out',
    policies: () => [egressOfClient([])],
    open: ({ from }) => from !== 'a/client',
  },
  {
    name: 'egress: a port name is looked up at the receiver',
    policies: () => [egressOfClient([{ to: [app('server'), team('b')], ports: [{ port: 'web' }] }])],
    open: ({ from, to, port }) => from !== 'a/client' || port === (to === 'a/server' ? 8080 : 8082),
  },
  {
    name: 'what leaves one pod must be let into the other',
    policies: () => [egressOfClient([{ to: [server] }]), ingress([app('other')])],
    open: ({ from, to }) => (to === 'a/server' ? from === 'a/other' : from !== 'a/client'),
  },
];
