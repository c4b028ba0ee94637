import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type NodeCluster, startNode } from '../cluster/node.ts';
import { readState } from '../cluster/node/state.ts';
import { type PodName, type Probe, SCENARIOS } from './support/network-policy-scenarios.ts';
import { pollAssertion } from '../support/poll.ts';

const IMAGE = 'localhost/prober:test';
/** The port `web` has a different number in the pods of namespace b. */
const PODS: readonly PodName[] = ['a/client', 'a/other', 'a/server', 'b/client', 'b/other'];
const SOURCES: readonly PodName[] = ['a/client', 'a/other', 'b/client', 'b/other'];
const PORTS = [8080, 8081, 8082];
const PROBES: readonly Probe[] = SOURCES.flatMap((from) =>
  (['a/server', 'b/other'] as const).flatMap((to) => (from === to ? [] : PORTS.map((port) => ({ from, to, port })))),
);
// These tests cover the project's own node, not a cluster from TEMPER_E2E_KUBECONFIG.
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'TEMPER_E2E_KUBECONFIG is set';

describe('startNode', { skip }, () => {
  let node: NodeCluster;
  let ip: Record<PodName, string>;

  before(async () => {
    node = await startNode();
    await node.buildImage(fileURLToPath(new URL('prober/Containerfile', import.meta.url)), IMAGE);
    await Promise.all(['a', 'b'].map((name) => makeNamespace(node, name)));
    await Promise.all(PODS.map((name) => makePod(node, name)));
    ip = Object.fromEntries(
      await Promise.all(PODS.map(async (name) => [name, await addressOnceReady(node, name)])),
    ) as typeof ip;
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  it('the node runs restricted pods, and Pod Security rejects others', async () => {
    const phases = await node.kubectl('get', 'pods', '-n', 'a', '-o', 'jsonpath={.items[*].status.phase}');
    assert.equal(phases, 'Running Running Running');
    const pod = podOf('a/client');
    const bad = { ...pod, metadata: { name: 'bad' }, spec: { ...pod.spec, hostNetwork: true } };
    const { status } = await node.admin.call('POST', '/api/v1/namespaces/a/pods', { body: bad });
    assert.equal(status, 403);
  });

  it('a Service is reachable by address and by name', async () => {
    const spec = { selector: { app: 'server' }, ports: [{ port: 80, targetPort: 'web' }] };
    const body = { metadata: { name: 'server' }, spec };
    const service = await node.admin.call('POST', '/api/v1/namespaces/a/services', { body });
    assert.equal(service.status, 201, JSON.stringify(service.body));
    const { clusterIP } = service.body['spec'] as { clusterIP: string };
    const target = `${clusterIP}:80`;
    await pollAssertion('the Service to be reachable by address', async () =>
      assert.deepEqual(await askProber(node, 'b/client', 'probe', target), { [target]: true }),
    );
    await pollAssertion('the name of the Service to resolve', async () =>
      assert.equal(await askProber(node, 'b/client', 'resolve', 'server.a.svc.cluster.local'), clusterIP),
    );
  });

  it('kubectl exec runs a command in a pod', async () => {
    const output = await node.kubectl('exec', '-n', 'a', 'client', '--', '/usr/local/bin/node', '-p', '6 * 7');
    assert.equal(output.trim(), '42');
  });

  for (const { name, policies, open } of SCENARIOS) {
    it(`network policies are enforced: ${name}`, async () => {
      await setPolicies(node, policies(ip));
      const expected = PROBES.filter(open).map(probeText);
      await pollAssertion('the expected connections', async () =>
        assert.deepEqual(await openProbes(node, ip), expected),
      );
      // The kubelet's probes come from the node, so every pod stays ready under any policy.
      for (const pod of PODS) assert.ok(isReady(await get(node, pod)), pod);
    });
  }

  it('network policies are enforced: an egress policy controls access to the node and the API server', async () => {
    const url = new URL(node.url);
    const targets = [`${url.hostname}:${url.port}`, '10.96.0.1:443'];
    const reached = async (from: PodName) =>
      Object.values((await askProber(node, from, 'probe', ...targets)) as object);
    const to = [{ ipBlock: { cidr: '0.0.0.0/0', except: [`${url.hostname}/32`] } }];
    const spec = { podSelector: { matchLabels: { app: 'client' } }, policyTypes: ['Egress'], egress: [{ to }] };
    await setPolicies(node, []);
    await pollAssertion('the node and the API server to be reachable', async () =>
      assert.deepEqual(await reached('a/client'), [true, true]),
    );
    await setPolicies(node, [{ namespace: 'a', spec }]);
    await pollAssertion('the egress policy to take effect', async () =>
      assert.deepEqual(await reached('a/client'), [false, false]),
    );
    assert.deepEqual(await reached('a/other'), [true, true]);
    const opened = { ...spec, egress: [{ to: [{ ipBlock: { cidr: `${url.hostname}/32` } }] }] };
    await setPolicies(node, [{ namespace: 'a', spec: opened }]);
    await pollAssertion('the changed egress policy to take effect', async () =>
      assert.deepEqual(await reached('a/client'), [true, true]),
    );
  });

  it('network policies are enforced: open connections stay open', async () => {
    const target = `${ip['a/server']}:8080`;
    await setPolicies(node, []);
    await pollAssertion('an open connection', async () =>
      assert.equal(await askProber(node, 'b/client', 'open', target), true),
    );
    await setPolicies(node, [{ namespace: 'a', spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] } }]);
    await pollAssertion('the policy to block new connections', async () =>
      assert.deepEqual(await askProber(node, 'b/client', 'probe', target), { [target]: false }),
    );
    assert.equal(await askProber(node, 'b/client', 'echo', target), true);
  });

  it('network policies are enforced: from the first packet of a pod', async () => {
    const target = `${ip['a/server']}:8080`;
    const start = async (name: string, labels: object) => {
      const pod = podOf('b/client');
      const [container] = pod.spec.containers;
      const body = {
        metadata: { name, labels },
        spec: { ...pod.spec, containers: [{ ...container, args: [target] }] },
      };
      const { status } = await node.admin.call('POST', '/api/v1/namespaces/b/pods', { body });
      assert.equal(status, 201);
      let reached: unknown;
      await pollAssertion(`the first connection of pod ${name}`, async () => {
        reached = await askProber(node, `b/${name}` as PodName, 'first');
      });
      return reached;
    };
    const podSelector = { matchLabels: { closed: 'yes' } };
    await setPolicies(node, [{ namespace: 'b', spec: { podSelector, policyTypes: ['Egress'] } }]);
    // The stopped enforcer does not see the new pod: the pod's start must wait for the enforcer.
    const enforcer = (await node.onNode('pgrep', '-f', 'network-policy/main.ts')).trim();
    await node.onNode('kill', '-STOP', enforcer);
    const closed = start('closed', { closed: 'yes' });
    await sleep(2000);
    await node.onNode('kill', '-CONT', enforcer);
    assert.deepEqual(await Promise.all([closed, start('free', {})]), [false, true]);
  });

  it('disposing removes processes, mounts, cgroups, links and files', async () => {
    const folder = dirname(node.kubeconfig);
    const state = await readState(folder);
    assert.ok(state !== undefined && existsSync(`/proc/${state.pid}`));
    const link = `temper${new URL(node.url).hostname.split('.')[2]}`;
    const index = links().get(link);
    assert.ok(index !== undefined);
    assert.ok(cgroups().includes(state.cgroup));
    await node[Symbol.asyncDispose]();
    assert.equal(existsSync(folder), false);
    assert.equal(existsSync(`/proc/${state.pid}`), false);
    assert.ok(!cgroups().includes(state.cgroup));
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(folder));
    await pollAssertion('the end of all processes of the cluster', async () =>
      assert.ok(!execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(folder)),
    );
    // The kernel removes a network namespace some time after its last process. Another cluster may reuse the link's name, but not its index.
    await pollAssertion('the removal of the network link', async () => assert.notEqual(links().get(link), index));
  });
});

async function makeNamespace(node: NodeCluster, name: string): Promise<void> {
  const labels = { team: name, 'pod-security.kubernetes.io/enforce': 'restricted' };
  const { status } = await node.admin.call('POST', '/api/v1/namespaces', { body: { metadata: { name, labels } } });
  assert.equal(status, 201);
}

function podOf(name: PodName) {
  const [namespace, app] = name.split('/') as [string, string];
  const container = {
    name: 'prober',
    image: IMAGE,
    ports: [{ name: 'web', containerPort: namespace === 'a' ? 8080 : 8082 }],
    readinessProbe: { httpGet: { path: '/ready', port: 9000 }, periodSeconds: 1 },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
  const securityContext = { runAsNonRoot: true, runAsUser: 65534, seccompProfile: { type: 'RuntimeDefault' } };
  const spec = { containers: [container], securityContext, terminationGracePeriodSeconds: 0 };
  return { metadata: { name: app, labels: { app } }, spec: { ...spec, automountServiceAccountToken: false } };
}

async function makePod(node: NodeCluster, name: PodName): Promise<void> {
  const path = `/api/v1/namespaces/${name.split('/')[0]}/pods`;
  // The namespace's service account is created shortly after the namespace.
  await pollAssertion(`the creation of pod ${name}`, async () => {
    const { status, body } = await node.admin.call('POST', path, { body: podOf(name) });
    assert.equal(status, 201, JSON.stringify(body));
  });
}

interface PodState {
  readonly status: { podIP?: string; conditions?: { type: string; status: string }[] };
}

async function get(node: NodeCluster, name: PodName): Promise<PodState> {
  const [namespace, pod] = name.split('/');
  return (await node.admin.call('GET', `/api/v1/namespaces/${namespace}/pods/${pod}`)).body as unknown as PodState;
}

function isReady({ status }: PodState): boolean {
  return (status.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

async function addressOnceReady(node: NodeCluster, name: PodName): Promise<string> {
  await pollAssertion(`pod ${name} to be Ready`, async () => assert.ok(isReady(await get(node, name)), name));
  return (await get(node, name)).status.podIP ?? '';
}

/** Sends a request to the prober of a pod through the API server; packets from the node pass all policies. */
async function askProber(node: NodeCluster, from: PodName, verb: string, ...targets: string[]): Promise<unknown> {
  const [namespace, pod] = from.split('/');
  const query = targets.map((target) => `target=${encodeURIComponent(target)}`).join('&');
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}:9000/proxy/${verb}?${query}`;
  const { status, body } = await node.admin.call('GET', path);
  assert.equal(status, 200, JSON.stringify(body));
  return body['answer'];
}

function probeText({ from, to, port }: Probe): string {
  return `${from} → ${to}:${port}`;
}

async function openProbes(node: NodeCluster, ip: Record<PodName, string>): Promise<string[]> {
  const target = ({ to, port }: Probe) => `${ip[to]}:${port}`;
  const answers = await Promise.all(
    SOURCES.map(async (from) => {
      const probes = PROBES.filter((probe) => probe.from === from);
      const reached = (await askProber(node, from, 'probe', ...probes.map(target))) as Record<string, boolean>;
      return probes.filter((probe) => reached[target(probe)] === true);
    }),
  );
  return answers.flat().map(probeText);
}

async function setPolicies(node: NodeCluster, policies: readonly { namespace: string; spec: object }[]): Promise<void> {
  const path = (namespace: string) => `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
  for (const namespace of ['a', 'b']) await node.admin.call('DELETE', path(namespace));
  for (const [index, { namespace, spec }] of policies.entries()) {
    const body = { metadata: { name: `policy-${index}` }, spec };
    const answer = await node.admin.call('POST', path(namespace), { body });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  }
}

/** The interface indexes of the machine's network links, by name. */
function links(): Map<string, number> {
  const text = execFileSync('ip', ['-j', 'link'], { encoding: 'utf8' });
  const found = JSON.parse(text) as { ifname: string; ifindex: number }[];
  return new Map(found.map(({ ifname, ifindex }) => [ifname, ifindex]));
}

function cgroups(): string {
  return execFileSync('find', ['/sys/fs/cgroup', '-maxdepth', '2', '-type', 'd'], { encoding: 'utf8' });
}
