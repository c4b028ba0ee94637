import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ruleset } from './ruleset.ts';
import { matches } from './selector.ts';
import type { Namespace, NetworkPolicy, Pod } from './types.ts';

const NAMESPACES: readonly Namespace[] = [aNamespace('a'), aNamespace('b')];

function aNamespace(name: string): Namespace {
  return { metadata: { name, uid: name, labels: { team: name } } };
}

function aPod(
  name: string,
  ip: string,
  more: { namespace?: string; web?: number; spec?: object; phase?: string } = {},
): Pod {
  const { namespace = 'a', web = 80, spec = {}, phase = 'Running' } = more;
  return {
    metadata: { name, namespace, uid: `${namespace}/${name}`, labels: { app: name } },
    spec: { containers: [{ ports: [{ name: 'web', containerPort: web }] }], ...spec },
    status: { phase, podIP: ip },
  };
}

const SERVER = aPod('server', '10.0.0.1');
const CLIENT = aPod('client', '10.0.0.2');
const FOREIGN = aPod('client', '10.0.0.3', { namespace: 'b', web: 8080 });

function rules(spec: NetworkPolicy['spec'], pods: readonly Pod[] = [SERVER, CLIENT, FOREIGN]) {
  const selected = { podSelector: { matchLabels: { app: 'server' } }, ...spec };
  const policies = [{ metadata: { name: 'p', namespace: 'a', uid: 'p' }, spec: selected }];
  const lines = ruleset({ pods, namespaces: NAMESPACES, policies }).split('\n');
  const from = (name: string) => {
    const start = lines.indexOf(`chain ${name} {`);
    return start < 0 ? undefined : lines.slice(start + 1, lines.indexOf('}', start));
  };
  return { ingress: from('ingress_10_0_0_1'), egress: from('egress_10_0_0_1'), pods: from('pods') };
}

describe('the nftables ruleset of network policies', () => {
  it('the ruleset replaces the previous ruleset in the same transaction', () => {
    const lines = ruleset({ pods: [], namespaces: [], policies: [] }).split('\n');
    assert.deepEqual(lines.slice(0, 3), [
      'table inet temper-network-policy',
      'delete table inet temper-network-policy',
      'table inet temper-network-policy {',
    ]);
  });

  it('the ruleset filters only pods that a policy selects, and accepts established connections first', () => {
    const { ingress, egress, pods } = rules({});
    assert.deepEqual(ingress, ['ip saddr 10.0.0.1 return', 'drop']);
    assert.equal(egress, undefined);
    assert.deepEqual(pods, [
      'ct state established,related accept',
      'ip daddr vmap { 10.0.0.1 : jump ingress_10_0_0_1 }',
    ]);
  });

  it('a policy applies to the directions in policyTypes, or to those of its rules when policyTypes is absent', () => {
    assert.ok(rules({ egress: [] }).egress);
    assert.ok(rules({ egress: [] }).ingress);
    assert.equal(rules({ policyTypes: ['Egress'] }).ingress, undefined);
    assert.equal(rules({ policyTypes: ['Ingress'], egress: [] }).egress, undefined);
  });

  it('a peer resolves to addresses in the namespace of the policy unless it has a namespaceSelector', () => {
    const from = (...peers: object[]) => rules({ ingress: [{ from: peers }] }).ingress?.slice(1, -1);
    assert.deepEqual(from({ podSelector: {} }), ['ip saddr { 10.0.0.1, 10.0.0.2 } return']);
    assert.deepEqual(from({ namespaceSelector: { matchLabels: { team: 'b' } } }), ['ip saddr { 10.0.0.3 } return']);
    assert.deepEqual(from({ namespaceSelector: {}, podSelector: { matchLabels: { app: 'client' } } }), [
      'ip saddr { 10.0.0.2, 10.0.0.3 } return',
    ]);
    assert.deepEqual(from({ podSelector: { matchLabels: { app: 'absent' } } }), []);
  });

  it('a rule without peers matches all peers, and an IPv6 block matches none', () => {
    assert.deepEqual(rules({ ingress: [{}] }).ingress?.slice(1, -1), ['return']);
    assert.deepEqual(rules({ ingress: [{ from: [] }] }).ingress?.slice(1, -1), ['return']);
    assert.deepEqual(rules({ ingress: [{ from: [{ ipBlock: { cidr: '::/0' } }] }] }).ingress?.slice(1, -1), []);
  });

  it('an IP block does not match its exceptions', () => {
    const ipBlock = { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.2.0.0/16'] };
    const to = (block: object) => rules({ egress: [{ to: [{ ipBlock: block }] } as never] }).egress?.slice(1, -1);
    assert.deepEqual(to(ipBlock), ['ip daddr 10.0.0.0/8 ip daddr != { 10.1.0.0/16, 10.2.0.0/16 } return']);
    assert.deepEqual(to({ ...ipBlock, cidr: '0.0.0.0/0' }), [
      'meta nfproto ipv4 ip daddr != { 10.1.0.0/16, 10.2.0.0/16 } return',
    ]);
  });

  it('a rule matches ports by number, range, protocol and name', () => {
    const on = (...ports: object[]) => rules({ ingress: [{ ports }] }).ingress?.slice(1, -1);
    assert.deepEqual(on({ port: 53, protocol: 'UDP' }), ['udp dport 53 return']);
    assert.deepEqual(on({ port: 1, endPort: 9 }, { protocol: 'SCTP' }), [
      'tcp dport 1-9 return',
      'meta l4proto sctp return',
    ]);
    assert.deepEqual(on({ port: 'web' }), ['tcp dport 80 return']);
    assert.deepEqual(on({ port: 'web', protocol: 'UDP' }), []);
    assert.deepEqual(on({ port: 'unknown' }), []);
  });

  it('a port name in an egress rule resolves per receiving pod', () => {
    const to = [{ namespaceSelector: {} }];
    const { egress } = rules({ egress: [{ to, ports: [{ port: 'web' }] }] });
    assert.deepEqual(egress?.slice(1, -1), [
      'ip daddr 10.0.0.1 tcp dport 80 return',
      'ip daddr 10.0.0.2 tcp dport 80 return',
      'ip daddr 10.0.0.3 tcp dport 8080 return',
    ]);
  });

  it('the ruleset ignores pods that have ended, that have no address, or that use the host network', () => {
    const ignored = [
      aPod('server', '10.0.0.1', { phase: 'Succeeded' }),
      aPod('server', ''),
      aPod('server', '10.0.0.1', { spec: { hostNetwork: true } }),
    ];
    for (const pod of ignored) assert.equal(rules({}, [pod]).ingress, undefined);
  });
});

describe('a label selector', () => {
  it('a label selector supports every operator of the API', () => {
    const holds = (operator: string, ...values: string[]) =>
      matches({ matchExpressions: [{ key: 'a', operator, values }] }, { a: '1' });
    assert.deepEqual([holds('In', '1', '2'), holds('In', '2')], [true, false]);
    assert.deepEqual([holds('NotIn', '2'), holds('NotIn', '1')], [true, false]);
    assert.deepEqual([holds('Exists'), holds('DoesNotExist')], [true, false]);
    assert.equal(matches({ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }), true);
    assert.throws(() => holds('Near'), /Near/);
  });
});
