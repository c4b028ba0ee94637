import type { Peer, PolicyPort } from '../../cluster/network-policy/types.ts';

/** A pod as `<namespace>/<name>`. Its label `app` is the name; the label `team` of its namespace is the namespace. */
export type PodName = 'a/client' | 'a/other' | 'a/server' | 'b/client' | 'b/other';

export interface Probe {
  readonly from: PodName;
  readonly to: PodName;
  readonly port: number;
}

export interface Scenario {
  readonly name: string;
  /** The policies of the scenario, each with its namespace. `ip` are the addresses of the pods. */
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

/** Only these pods can reach a/server; all other targets stay reachable. */
const onlyFrom =
  (...names: PodName[]) =>
  ({ from, to }: Probe) =>
    to !== 'a/server' || names.includes(from);

const onlyOn =
  (...ports: number[]) =>
  ({ to, port }: Probe) =>
    to !== 'a/server' || ports.includes(port);

export const SCENARIOS: readonly Scenario[] = [
  { name: 'without a policy all connections pass', policies: () => [], open: () => true },
  {
    name: 'a policy without rules blocks only the pods it selects',
    policies: () => [{ namespace: 'a', spec: { ...server, policyTypes: ['Ingress'] } }],
    open: onlyFrom(),
  },
  {
    name: 'a pod selector matches pods in the namespace of the policy',
    policies: () => [ingress([app('client')])],
    open: onlyFrom('a/client'),
  },
  {
    name: 'a namespace selector matches all pods of those namespaces',
    policies: () => [ingress([team('b')])],
    open: onlyFrom('b/client', 'b/other'),
  },
  {
    name: 'both selectors in one entry must match',
    policies: () => [ingress([{ ...team('b'), ...app('client') }])],
    open: onlyFrom('b/client'),
  },
  {
    name: 'one matching entry of several is enough',
    policies: () => [ingress([team('b'), app('client')])],
    open: onlyFrom('a/client', 'b/client', 'b/other'),
  },
  {
    name: 'exceptions of an IP block do not match',
    policies: (ip) => [ingress([{ ipBlock: { cidr: '10.244.0.0/16', except: [`${ip['a/client']}/32`] } }])],
    open: onlyFrom('a/other', 'b/client', 'b/other'),
  },
  {
    name: 'a port matches by number',
    policies: () => [ingress(undefined, [{ port: 8081 }])],
    open: onlyOn(8081),
  },
  {
    name: 'a port range matches',
    policies: () => [ingress(undefined, [{ port: 8080, endPort: 8081 }])],
    open: onlyOn(8080, 8081),
  },
  {
    name: 'a port matches by name',
    policies: () => [ingress(undefined, [{ port: 'web' }])],
    open: onlyOn(8080),
  },
  {
    name: 'several policies are additive',
    policies: () => [ingress(undefined, [{ port: 8080 }]), ingress([team('b')], [{ port: 8082 }])],
    open: (probe) => onlyOn(8080)(probe) || (probe.from.startsWith('b/') && probe.port === 8082),
  },
  {
    name: 'an egress policy without rules blocks all egress',
    policies: () => [egressOfClient([])],
    open: ({ from }) => from !== 'a/client',
  },
  {
    name: 'a port name in an egress rule resolves per receiving pod',
    policies: () => [egressOfClient([{ to: [app('server'), team('b')], ports: [{ port: 'web' }] }])],
    open: ({ from, to, port }) => from !== 'a/client' || port === (to === 'a/server' ? 8080 : 8082),
  },
  {
    name: 'egress of the sender and ingress of the receiver must both allow a connection',
    policies: () => [egressOfClient([{ to: [server] }]), ingress([app('other')])],
    open: ({ from, to }) => (to === 'a/server' ? from === 'a/other' : from !== 'a/client'),
  },
];
