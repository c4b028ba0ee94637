import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AUDIENCES, POD_PATHS, PORTS } from '../../../src/api/cluster.ts';
import { POD_API_PATHS } from '../../../src/gateway-api/pod-api.ts';
import {
  callGateway,
  runInPod,
  repeatedCallScript,
  containerPid,
  reachabilityScript,
  freezeAgentProcess,
} from '../support/in-pod.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, type PodObject, policyObject } from '../support/fixture.ts';

const NAMESPACE = 'gateway-access';
/** Addresses outside the cluster; a listener on the node responds at them. */
const METADATA = '169.254.169.254';
const INTERNET = '192.0.2.1';
const OUTSIDE_PORT = 8099;

/** Network access from inside an agent's pod, and the rights of its token. */
export function gatewayAccess(cluster: () => InstalledCluster): void {
  describe('network access of an agent pod', () => {
    let agents: NamespaceAgents;
    let pod: PodObject;
    let other: PodObject;
    let targets: Record<string, string>;
    let gateway: string;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE));
      const names = ['one', 'other'];
      await cluster().apply(policyObject(NAMESPACE), ...names.map((name) => agentObject(NAMESPACE, name)));
      for (const name of names) await agents.waitForReason(name, 'Running');
      [pod, other] = [await agents.boundPod('one'), await agents.boundPod('other')];
      const { hostname: node } = new URL(cluster().node.url);
      const podOf = (component: string) =>
        addressOf(cluster(), RELEASE_NAMESPACE, `app.kubernetes.io/component=${component}`);
      gateway = `${await clusterAddress(cluster(), 'temper-gateway')}:${PORTS.gateway}`;
      targets = {
        'API server': '10.96.0.1:443',
        'API server at the node': `${node}:6443`,
        DNS: '10.96.0.10:53',
        NATS: `${await clusterAddress(cluster(), 'temper-nats')}:${PORTS.nats}`,
        'the pod of NATS': `${await podOf('nats')}:${PORTS.nats}`,
        kubelet: `${node}:10250`,
        'a pod of the operator': `${await podOf('operator')}:${PORTS.health}`,
        'the health port of a gateway pod': `${await podOf('gateway')}:${PORTS.health}`,
        'the scripted model': `${await clusterAddress(cluster(), 'temper-replay')}:8080`,
        'the cloud metadata service': `${METADATA}:${OUTSIDE_PORT}`,
        'the internet': `${INTERNET}:${OUTSIDE_PORT}`,
      };
    });

    it('both containers can reach only the gateway', async () => {
      const { node } = cluster();
      await listenOutside(cluster());
      const all = [gateway, ...Object.values(targets)];
      const fromNode = JSON.parse(
        await node.onNode(process.execPath, '--input-type=module', '-e', reachabilityScript(all)),
      ) as object;
      const named = (reached: object) =>
        Object.fromEntries(Object.entries(targets).map(([name, at]) => [name, Reflect.get(reached, at) as unknown]));
      // Each target responds when it is called from the node.
      for (const [name, answers] of Object.entries(named(fromNode))) assert.equal(answers, true, name);
      for (const container of ['agent', 'sandbox'] as const) {
        const reached = (await runInPod(node, pod, container, reachabilityScript(all))) as object;
        for (const [name, answers] of Object.entries(named(reached)))
          assert.equal(answers, false, `${name} from ${container}`);
        assert.equal(Reflect.get(reached, gateway), true, container);
      }
    });

    it('neither container can resolve a name', async () => {
      const script = `
        import { Resolver } from 'node:dns/promises';
        const ask = async (server) => {
          const resolver = new Resolver({ timeout: 500, tries: 1 });
          if (server !== undefined) resolver.setServers([server]);
          return resolver.resolve4('temper-gateway.${RELEASE_NAMESPACE}.svc.cluster.local').catch((error) => error.code);
        };
        console.log(JSON.stringify(await Promise.all([ask(), ask('10.96.0.10')])));
      `;
      const resolved = JSON.parse(
        await cluster().node.onNode(process.execPath, '--input-type=module', '-e', script),
      ) as unknown[];
      assert.ok(Array.isArray(resolved[1]), JSON.stringify(resolved));
      for (const container of ['agent', 'sandbox'] as const) {
        assert.deepEqual(await runInPod(cluster().node, pod, container, script), ['ETIMEOUT', 'ETIMEOUT']);
      }
    });

    it('the sandbox cannot open a network socket', async () => {
      const script = `
        import { createSocket } from 'node:dgram';
        import { connect, createServer } from 'node:net';
        const outcome = (make) => new Promise((resolve) => {
          try {
            make(resolve).on('error', (error) => resolve(error.code));
          } catch (error) {
            resolve(error.code);
          }
        });
        console.log(JSON.stringify(await Promise.all([
          outcome((done) => connect(${PORTS.gateway}, '${gateway.split(':')[0]}', () => done('open'))),
          outcome((done) => connect(80, '127.0.0.1', () => done('open'))),
          outcome((done) => connect(80, '::1', () => done('open'))),
          outcome((done) => createServer().listen(0, '127.0.0.1', () => done('open'))),
          outcome((done) => createSocket('udp4').bind(0, () => done('open'))),
          outcome((done) => createSocket('udp6').bind(0, () => done('open'))),
          outcome((done) => createServer().listen('/tmp/test-' + process.pid, () => done('open')).unref()),
        ])));
        process.exit(0);
      `;
      const { node } = cluster();
      const confined = await runInPod(node, pod, 'sandbox', script, { confined: true });
      assert.deepEqual(confined, [...Array.from({ length: 6 }, () => 'EPERM'), 'open']);
      const first = await containerPid(node, pod, 'sandbox');
      const filters = (status: string) => /Seccomp_filters:\s*(\d+)/.exec(status)?.[1];
      // Two seccomp filters: the one of the runtime and the one of the launcher.
      assert.equal(filters(await node.onNode('cat', `/proc/${first}/status`)), '2');
    });

    describe('gateway tokens', () => {
      let token: string;
      let userToken: string;
      const call = (from: PodObject, call: Parameters<typeof callGateway>[2]) =>
        callGateway(cluster().node, from, call);
      const ask = { path: POD_API_PATHS.nextMessage, body: { waitSeconds: 0 } };
      const userPath = `/v1/users/namespaces/${NAMESPACE}/top`;

      before(async () => {
        const script = `
          import { readFileSync } from 'node:fs';
          console.log(JSON.stringify(readFileSync('${POD_PATHS.gatewayToken}', 'utf8')));
        `;
        token = (await runInPod(cluster().node, pod, 'agent', script)) as string;
        const audience = `--audience=${AUDIENCES.gateway}`;
        userToken = (await cluster().kubectl('create', 'token', 'temper-users', '-n', NAMESPACE, audience)).trim();
      });

      it('the sandbox container has no token', async () => {
        const script = `
          import { existsSync } from 'node:fs';
          console.log(JSON.stringify(['${POD_PATHS.gatewayToken}', '/var/run/secrets'].map((path) => existsSync(path))));
        `;
        assert.deepEqual(await runInPod(cluster().node, pod, 'sandbox', script), [false, false]);
        const [, secrets] = (await runInPod(cluster().node, pod, 'agent', script)) as boolean[];
        assert.equal(secrets, false);
      });

      it('a pod token is rejected by the user API, and a user token by the pod API', async () => {
        const asPerson = await call(pod, { method: 'GET', path: userPath, headers: { 'temper-token': token } });
        assert.deepEqual([asPerson.status, asPerson.code], [401, 'TEMPER_TOKEN_INVALID']);
        const asPod = await call(pod, { ...ask, token: userToken });
        assert.deepEqual([asPod.status, asPod.code], [401, 'TEMPER_TOKEN_INVALID']);
        const right = await call(pod, { method: 'GET', path: userPath, headers: { 'temper-token': userToken } });
        assert.equal(right.status, 200, JSON.stringify(right.body));
      });

      it('the API server rejects both tokens', async () => {
        for (const rejected of [token, userToken]) {
          assert.equal((await cluster().node.admin.call('GET', '/api', { token: rejected })).status, 401);
        }
      });

      it('a pod token is rejected from another address', async () => {
        const answer = await call(other, { ...ask, token });
        assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_POD_ADDRESS_MISMATCH']);
      });

      it('the token of a deleted pod is rejected within two seconds', async () => {
        const { node } = cluster();
        // The frozen agent process ignores SIGTERM, so the container stays alive and can send requests.
        await freezeAgentProcess(node, pod);
        const asking = runInPod(
          node,
          pod,
          'agent',
          repeatedCallScript(POD_API_PATHS.nextMessage, { waitSeconds: 0 }, 7_000),
        );
        await sleep(2_000);
        await agents.deletePod(pod);
        const deleted = Date.now();
        const answers = (await asking) as { at: number; status: number }[];
        const refused = answers.find(({ at, status }) => at >= deleted && status >= 400);
        assert.ok(
          answers.some(({ at, status }) => at < deleted && status < 300),
          'the token was accepted before',
        );
        assert.ok(refused !== undefined && refused.at - deleted <= 2_000, JSON.stringify([deleted, refused]));
        assert.ok(
          answers.every(({ at, status }) => at < refused.at || status >= 400),
          'the token stays rejected',
        );
        await agents.waitForReason('one', 'Running');
      });
    });
  });
}

async function clusterAddress(cluster: InstalledCluster, service: string): Promise<string> {
  return cluster.kubectl('get', 'service', service, '-n', RELEASE_NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}');
}

async function addressOf(cluster: InstalledCluster, namespace: string, selector: string): Promise<string> {
  return cluster.kubectl('get', 'pods', '-n', namespace, '-l', selector, '-o', 'jsonpath={.items[0].status.podIP}');
}

/** Listens at the outside addresses for 20 seconds, so that they would respond if the pod could reach them. */
async function listenOutside({ node }: InstalledCluster): Promise<void> {
  for (const address of [METADATA, INTERNET])
    await node.onNode('ip', 'address', 'replace', `${address}/32`, 'dev', 'lo');
  const script = `
    import { createServer } from 'node:net';
    createServer((socket) => socket.on('error', () => {}).end()).listen(${OUTSIDE_PORT});
    setTimeout(() => process.exit(0), 20_000);
  `;
  void node.onNode(process.execPath, '--input-type=module', '-e', script).catch(() => undefined);
  await sleep(1_000);
}
