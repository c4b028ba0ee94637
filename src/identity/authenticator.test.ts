import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Store } from '../kube/informer/store.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import { type AgentPod, normalAddress, prunePod } from './agent-pod.ts';
import { type BoundAgent, PodBindings } from './pod-bindings.ts';
import { createAuthenticator } from './authenticator.ts';
import type { TokenSubject } from './token-claims.ts';
import type { Authenticator, PodToken } from './types.ts';

const OWNER = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'any', controller: true };
const labelled = (agentUid: string) => ({
  labels: { 'temper.dev/agent-uid': agentUid },
  ownerReferences: [{ ...OWNER, uid: agentUid }],
});
const EGRESS_POD = { namespace: 'temper-system', podName: 'egress-1', podUid: 'egress-uid' };
const SUBJECTS: Record<string, TokenSubject> = {
  user: { kind: 'user', namespace: 'team-a', tokenId: 'token-1' },
  client: { kind: 'egress-client', namespace: 'team-a', podName: 'scout-1', podUid: 'pod-uid-1' },
  egress: { kind: 'egress', ...EGRESS_POD },
  gateway: { kind: 'egress-gateway', ...EGRESS_POD },
  'gateway of a tenant': { kind: 'egress-gateway', ...EGRESS_POD, namespace: 'team-a' },
  'egress of a tenant': { kind: 'egress', ...EGRESS_POD, namespace: 'team-a' },
};
const TOKEN: PodToken = { kind: 'pod', namespace: 'team-a', podName: 'scout-1', podUid: 'pod-uid-1' };

function pod(change: Partial<AgentPod['metadata']> = {}, podIP: string | undefined = '10.0.0.7'): AgentPod {
  const metadata = {
    name: 'scout-1',
    namespace: 'team-a',
    uid: 'pod-uid-1',
    resourceVersion: String(Math.random()),
    ...labelled('uid-of-scout'),
    ...change,
  };
  return { metadata, ...(podIP === undefined ? {} : { status: { podIP } }) };
}

function agent(name: string, bound?: { name: string; uid: string }, namespace = 'team-a'): BoundAgent {
  const metadata = { name, namespace, uid: `uid-of-${name}`, resourceVersion: String(Math.random()) };
  return { metadata, ...(bound === undefined ? {} : { status: { pod: bound } }) };
}

const SCOUT_POD = { name: 'scout-1', uid: 'pod-uid-1' };

describe('the identity of a pod', () => {
  let agents: Store<BoundAgent>;
  let pods: Store<AgentPod>;
  let conflicts: string[][];
  let identity: Authenticator;

  beforeEach(() => {
    agents = new Store<BoundAgent>({ freeze: true });
    pods = new Store<AgentPod>({ freeze: true });
    conflicts = [];
    identity = createAuthenticator({
      releaseNamespace: 'temper-system',
      verifier: {
        isVerified: () => true,
        verify: async (token) => SUBJECTS[token] ?? TOKEN,
      },
      bindings: new PodBindings(agents, pods),
      onBindingConflict: (_podUid, bound) => conflicts.push(bound.map(({ metadata }) => metadata.name)),
    });
    pods.set(pod());
    agents.set(agent('scout', SCOUT_POD));
  });

  const refused = (address: string, code: ErrorCode) =>
    assert.rejects(identity.pod('pod', address), (error) => isTemperError(error, code));

  it('a pod is identified as the agent that is bound to it', async () => {
    const found = await identity.pod('pod', '10.0.0.7');
    assert.deepEqual(found, { ...TOKEN, agent: 'scout', agentUid: 'uid-of-scout' });
    assert.equal(identity.isStillBound('pod-uid-1', 'uid-of-scout'), true);
  });

  it('a request from another address is rejected, in any notation of the address', async () => {
    await refused('10.0.0.8', 'TEMPER_POD_ADDRESS_MISMATCH');
    await refused('::ffff:10.0.0.70', 'TEMPER_POD_ADDRESS_MISMATCH');
    await refused('', 'TEMPER_POD_ADDRESS_MISMATCH');
    await identity.pod('pod', '::ffff:10.0.0.7');
  });

  it('a pod without an address, or with another name or namespace, is rejected', async () => {
    pods.set(pod({}, ''));
    await refused('', 'TEMPER_POD_STARTING');
    pods.delete('team-a/scout-1');
    await refused('10.0.0.7', 'TEMPER_POD_UNKNOWN');
    pods.set(pod({ name: 'scout-2' }));
    await refused('10.0.0.7', 'TEMPER_POD_UNKNOWN');
    pods.replace([pod({ namespace: 'team-b' })]);
    await refused('10.0.0.7', 'TEMPER_POD_UNKNOWN');
  });

  it('a warm pod is accepted by podOrWarm only', async () => {
    pods.set(pod({ labels: {}, ownerReferences: [] }));
    agents.set(agent('scout'));
    await refused('10.0.0.7', 'TEMPER_POD_NOT_BOUND');
    assert.deepEqual(await identity.podOrWarm('pod', '10.0.0.7'), TOKEN);
  });

  it('a pod that two agents name is rejected, in any namespace, and the conflict is reported', async () => {
    agents.set(agent('double', SCOUT_POD, 'team-b'));
    await refused('10.0.0.7', 'TEMPER_POD_BINDING_CONFLICT');
    assert.equal(identity.isStillBound('pod-uid-1', 'uid-of-scout'), false);
    assert.deepEqual(conflicts, [['scout', 'double']]);
  });

  it('an agent in another namespace, or with another pod name, does not bind the pod', async () => {
    agents.replace([agent('scout', SCOUT_POD, 'team-b')]);
    await refused('10.0.0.7', 'TEMPER_POD_NOT_BOUND');
    pods.set(pod({ deletionTimestamp: '2026-05-04T12:00:00Z' }));
    agents.replace([agent('scout', { name: 'scout-2', uid: 'pod-uid-1' })]);
    await refused('10.0.0.7', 'TEMPER_POD_NOT_BOUND');
  });

  it('the identity ends when another living pod is confirmed, or the pod is deleted', async () => {
    const found = await identity.pod('pod', '10.0.0.7');
    pods.set(pod({ name: 'scout-2', uid: 'pod-uid-2' }));
    assert.equal(identity.isStillBound(found.podUid, found.agentUid), true);
    agents.set(agent('scout', { name: 'scout-2', uid: 'pod-uid-2' }));
    assert.equal(identity.isStillBound(found.podUid, found.agentUid), false);
    await refused('10.0.0.7', 'TEMPER_POD_NOT_BOUND');
    agents.set(agent('scout', SCOUT_POD));
    assert.equal(identity.isStillBound(found.podUid, found.agentUid), true);
    pods.delete('team-a/scout-1');
    assert.equal(identity.isStillBound(found.podUid, found.agentUid), false);
    await refused('10.0.0.7', 'TEMPER_POD_UNKNOWN');
  });

  it('two living pods of an agent that confirms none are rejected, and the conflict is reported', async () => {
    agents.set(agent('scout'));
    pods.set(pod({ name: 'scout-2', uid: 'pod-uid-2' }));
    await refused('10.0.0.7', 'TEMPER_POD_BINDING_CONFLICT');
    assert.deepEqual(conflicts, [['scout']]);
  });

  it('a pod token is not accepted as a user token, nor a user token as a pod token', async () => {
    await assert.rejects(identity.pod('user', '10.0.0.7'), (error) => isTemperError(error, 'TEMPER_TOKEN_INVALID'));
    await assert.rejects(identity.user('pod'), (error) => isTemperError(error, 'TEMPER_TOKEN_INVALID'));
    assert.deepEqual(await identity.user('user'), { kind: 'user', namespace: 'team-a', tokenId: 'token-1' });
  });

  it('a gateway of the release uses the egress proxy, and its token for the proxy is valid for nothing else', async () => {
    assert.equal((await identity.egressClient('gateway', '10.9.9.9')).kind, 'egress-gateway');
    await assert.rejects(identity.egressClient('gateway of a tenant', '10.0.0.7'), { code: 'TEMPER_TOKEN_INVALID' });
    await assert.rejects(identity.egress('gateway'), { code: 'TEMPER_TOKEN_AUDIENCE' });
  });

  it('a pod that uses the egress proxy is identified by its token for the proxy only, and from its address only', async () => {
    const found = await identity.egressClient('client', '10.0.0.7');
    assert.deepEqual(found, { ...TOKEN, agent: 'scout', agentUid: 'uid-of-scout' });
    await assert.rejects(identity.egressClient('client', '10.0.0.8'), { code: 'TEMPER_POD_ADDRESS_MISMATCH' });
    await assert.rejects(identity.egressClient('pod', '10.0.0.7'), { code: 'TEMPER_TOKEN_AUDIENCE' });
    await assert.rejects(identity.egressClient('user', '10.0.0.7'), { code: 'TEMPER_TOKEN_INVALID' });
    await refusedClient();
    pods.set(pod({ labels: {}, ownerReferences: [] }));
    agents.set(agent('scout'));
    await assert.rejects(identity.egressClient('client', '10.0.0.7'), { code: 'TEMPER_POD_NOT_BOUND' });
  });

  /** The gateway's own routes do not take the token for the proxy. */
  async function refusedClient(): Promise<void> {
    await assert.rejects(identity.pod('client', '10.0.0.7'), { code: 'TEMPER_TOKEN_AUDIENCE' });
    await assert.rejects(identity.verifier('client', '10.0.0.7'), { code: 'TEMPER_TOKEN_AUDIENCE' });
    await assert.rejects(identity.user('client'), { code: 'TEMPER_TOKEN_AUDIENCE' });
    await assert.rejects(identity.peer('client'), { code: 'TEMPER_TOKEN_AUDIENCE' });
    await assert.rejects(identity.egress('client'), { code: 'TEMPER_TOKEN_AUDIENCE' });
  }

  it('the egress proxy is that of the release, and no account of the same name elsewhere', async () => {
    assert.deepEqual(await identity.egress('egress'), { kind: 'egress', ...EGRESS_POD });
    await assert.rejects(identity.egress('egress of a tenant'), { code: 'TEMPER_TOKEN_INVALID' });
    await assert.rejects(identity.egress('pod'), { code: 'TEMPER_TOKEN_INVALID' });
    await assert.rejects(identity.pod('egress', '10.0.0.7'), { code: 'TEMPER_TOKEN_INVALID' });
  });

  it('a pod may have several addresses, IPv4 and IPv6', async () => {
    const status = { podIP: '10.0.0.7', podIPs: [{ ip: '10.0.0.7' }, { ip: 'FD00::7' }] };
    pods.set({ ...pod(), status });
    await identity.pod('pod', 'fd00::7');
    await identity.pod('pod', '10.0.0.7');
  });
});

describe('a pruned pod', () => {
  it('a pruned pod keeps only what identifies it, its binding and its addresses', () => {
    const other = { ...OWNER, kind: 'Node', uid: 'n', controller: false };
    const { labels, ownerReferences } = labelled('uid-of-scout');
    const full = {
      ...pod({
        resourceVersion: '1',
        labels: { ...labels, a: 'b' },
        annotations: { note: 'x' },
        ownerReferences: [other, ...ownerReferences],
      }),
      spec: { containers: [] },
      status: { podIP: '10.0.0.7', phase: 'Running', conditions: [] },
    };
    assert.deepEqual(prunePod(full), {
      metadata: {
        name: 'scout-1',
        namespace: 'team-a',
        uid: 'pod-uid-1',
        resourceVersion: '1',
        labels,
        ownerReferences,
      },
      status: { podIP: '10.0.0.7', phase: 'Running' },
    });
  });

  it('normalAddress gives all notations of one address the same text', () => {
    assert.equal(normalAddress('::FFFF:10.1.2.3'), '10.1.2.3');
    assert.equal(normalAddress('FE80::1%eth0'), 'fe80::1');
  });
});
