import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AUDIENCES, POD_PATHS, PORTS } from '../../src/api/cluster.ts';
import { PATHS } from '../../src/remote/wire.ts';
import { callGateway, inside, keepAsking, processOf, reach, takeOver } from './inside.ts';
import { type Installation, RELEASE_NAMESPACE } from './installation.ts';
import { Agents, agentObject, namespaceObject, type PodObject, policyObject } from './scene.ts';

const NAMESPACE = 'doors';
/** Addresses that lead out of any cluster; a listener on the node stands in for who would answer. */
const METADATA = '169.254.169.254';
const INTERNET = '192.0.2.1';
const OUTSIDE_PORT = 8099;

/** What can be reached from inside a pod, and what its token opens. */
export function theDoors(installation: () => Installation): void {
  describe('inside the pod of an agent', () => {
    let agents: Agents;
    let pod: PodObject;
    let other: PodObject;
    let targets: Record<string, string>;
    let gateway: string;

    before(async () => {
      agents = new Agents(installation(), NAMESPACE);
      await installation().apply(namespaceObject(NAMESPACE));
      const names = ['one', 'other'];
      await installation().apply(policyObject(NAMESPACE), ...names.map((name) => agentObject(NAMESPACE, name)));
      for (const name of names) await agents.until(name, 'Running');
      [pod, other] = [await agents.pod('one'), await agents.pod('other')];
      const { hostname: node } = new URL(installation().node.url);
      const podOf = (component: string) =>
        addressOf(installation(), RELEASE_NAMESPACE, `app.kubernetes.io/component=${component}`);
      gateway = `${await clusterAddress(installation(), 'temper-gateway')}:${PORTS.gateway}`;
      targets = {
        'API server': '10.96.0.1:443',
        'API server at the node': `${node}:6443`,
        DNS: '10.96.0.10:53',
        NATS: `${await clusterAddress(installation(), 'temper-nats')}:${PORTS.nats}`,
        'the pod of NATS': `${await podOf('nats')}:${PORTS.nats}`,
        kubelet: `${node}:10250`,
        'a pod of the operator': `${await podOf('operator')}:${PORTS.health}`,
        'a pod of the gateway, beside its door': `${await podOf('gateway')}:${PORTS.health}`,
        'the scripted model': `${await clusterAddress(installation(), 'temper-replay')}:8080`,
        'the metadata of the cloud': `${METADATA}:${OUTSIDE_PORT}`,
        'the internet': `${INTERNET}:${OUTSIDE_PORT}`,
      };
    });

    it('nothing is reached but the gateway, from either container', async () => {
      const { node } = installation();
      await listenOutside(installation());
      const all = [gateway, ...Object.values(targets)];
      const fromNode = JSON.parse(
        await node.onNode(process.execPath, '--input-type=module', '-e', reach(all)),
      ) as object;
      const named = (reached: object) =>
        Object.fromEntries(Object.entries(targets).map(([name, at]) => [name, Reflect.get(reached, at) as unknown]));
      // Somebody answers at each of them.
      for (const [name, answers] of Object.entries(named(fromNode))) assert.equal(answers, true, name);
      for (const container of ['agent', 'sandbox'] as const) {
        const reached = (await inside(node, pod, container, reach(all))) as object;
        for (const [name, answers] of Object.entries(named(reached)))
          assert.equal(answers, false, `${name} from ${container}`);
        assert.equal(Reflect.get(reached, gateway), true, container);
      }
    });

    it('no name is resolved', async () => {
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
        await installation().node.onNode(process.execPath, '--input-type=module', '-e', script),
      ) as unknown[];
      assert.ok(Array.isArray(resolved[1]), JSON.stringify(resolved));
      for (const container of ['agent', 'sandbox'] as const) {
        assert.deepEqual(await inside(installation().node, pod, container, script), ['ETIMEOUT', 'ETIMEOUT']);
      }
    });

    it('the sandbox opens no network socket at all', async () => {
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
      const { node } = installation();
      const confined = await inside(node, pod, 'sandbox', script, { confined: true });
      assert.deepEqual(confined, [...Array.from({ length: 6 }, () => 'EPERM'), 'open']);
      const first = await processOf(node, pod, 'sandbox');
      const filters = (status: string) => /Seccomp_filters:\s*(\d+)/.exec(status)?.[1];
      // What runs there has the launcher's filter beside that of the runtime.
      assert.equal(filters(await node.onNode('cat', `/proc/${first}/status`)), '2');
    });

    describe('the token', () => {
      let token: string;
      let people: string;
      const call = (from: PodObject, call: Parameters<typeof callGateway>[2]) =>
        callGateway(installation().node, from, call);
      const ask = { path: PATHS.nextMessage, body: { waitSeconds: 0 } };
      const peoplePath = `/v1/people/namespaces/${NAMESPACE}/top`;

      before(async () => {
        const script = `
          import { readFileSync } from 'node:fs';
          console.log(JSON.stringify(readFileSync('${POD_PATHS.gatewayToken}', 'utf8')));
        `;
        token = (await inside(installation().node, pod, 'agent', script)) as string;
        const audience = `--audience=${AUDIENCES.gateway}`;
        people = (await installation().kubectl('create', 'token', 'temper-people', '-n', NAMESPACE, audience)).trim();
      });

      it('is not there for the sandbox', async () => {
        const script = `
          import { existsSync } from 'node:fs';
          console.log(JSON.stringify(['${POD_PATHS.gatewayToken}', '/var/run/secrets'].map((path) => existsSync(path))));
        `;
        assert.deepEqual(await inside(installation().node, pod, 'sandbox', script), [false, false]);
        const [, secrets] = (await inside(installation().node, pod, 'agent', script)) as boolean[];
        assert.equal(secrets, false);
      });

      it('of a pod opens no door of people, and theirs none of pods', async () => {
        const asPerson = await call(pod, { method: 'GET', path: peoplePath, headers: { 'temper-token': token } });
        assert.deepEqual([asPerson.status, asPerson.code], [401, 'TEMPER_TOKEN_INVALID']);
        const asPod = await call(pod, { ...ask, token: people });
        assert.deepEqual([asPod.status, asPod.code], [401, 'TEMPER_TOKEN_INVALID']);
        const right = await call(pod, { method: 'GET', path: peoplePath, headers: { 'temper-token': people } });
        assert.equal(right.status, 200, JSON.stringify(right.body));
      });

      it('of either opens nothing at the API server', async () => {
        for (const one of [token, people]) {
          assert.equal((await installation().node.admin.call('GET', '/api', { token: one })).status, 401);
        }
      });

      it('of a pod is worth nothing at another address', async () => {
        const answer = await call(other, { ...ask, token });
        assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_POD_ADDRESS']);
      });

      it('of a pod that was deleted is refused within two seconds', async () => {
        const { node } = installation();
        // It must live on to be refused: stopped, it does not hear that it shall end.
        await takeOver(node, pod);
        const asking = inside(node, pod, 'agent', keepAsking(PATHS.nextMessage, { waitSeconds: 0 }, 7_000));
        await sleep(2_000);
        await agents.remove(pod);
        const deleted = Date.now();
        const answers = (await asking) as { at: number; status: number }[];
        const refused = answers.find(({ at, status }) => at >= deleted && status >= 400);
        assert.ok(
          answers.some(({ at, status }) => at < deleted && status < 300),
          'it was taken before',
        );
        assert.ok(refused !== undefined && refused.at - deleted <= 2_000, JSON.stringify([deleted, refused]));
        assert.ok(
          answers.every(({ at, status }) => at < refused.at || status >= 400),
          'it stays refused',
        );
        await agents.until('one', 'Running');
      });
    });
  });
}

async function clusterAddress(installation: Installation, service: string): Promise<string> {
  return installation.kubectl('get', 'service', service, '-n', RELEASE_NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}');
}

async function addressOf(installation: Installation, namespace: string, selector: string): Promise<string> {
  return installation.kubectl(
    'get',
    'pods',
    '-n',
    namespace,
    '-l',
    selector,
    '-o',
    'jsonpath={.items[0].status.podIP}',
  );
}

/** Answers, for as long as the probes take, where outside of a cluster somebody might. */
async function listenOutside({ node }: Installation): Promise<void> {
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
