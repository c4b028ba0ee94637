import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { bundle } from '../../../sandbox-image/bundle.ts';
import { NAMESPACE_OBJECTS } from '../../../src/api/cluster.ts';
import { issueTlsIdentity } from '../../../src/gateway-client/certificates.testing.ts';
import { freePorts } from '../../../test/cluster/process.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import {
  createAgent,
  type ReadyWatch,
  readyPods,
  runConcurrently,
  runningAgents,
  type Times,
} from '../support/agents.ts';
import { BenchCluster, RELEASE } from '../support/bench-cluster.ts';
import type { OperatorProcess } from '../support/operator-process.ts';
import { ServerProcess } from '../support/server-process.ts';
import { NatsCluster, STORE_BYTES } from './nats-cluster.ts';
import type { Pod, StoredAgent } from '../../../src/operator/kube/types.ts';

export const GATEWAY_NAME = 'temper-gateway.temper-system.svc';
const TOKEN_AUDIENCE = 'temper-gateway';
const TOKEN_SECONDS = 3_600;
const NAMESPACE_CONCURRENCY = 10;
/** As in the chart. The heap limit is the one that Node takes in a container of 512 MiB: half of it. A larger heap is collected later. */
const NODE_ENVIRONMENT = {
  NODE_OPTIONS: '--max-semi-space-size=2 --max-old-space-size=256',
  MALLOC_ARENA_MAX: '2',
};
/** More than the default, whose nine tenths for pods are fewer than 2,500 pods. */
const MAX_CONNECTIONS = 4_000;
/** Where the packages that a bundle does not contain are found. */
const CACHE = resolve(import.meta.dirname, '../../../node_modules/.cache');

/** An agent with its bound pod. */
export interface BoundAgent {
  readonly namespace: string;
  readonly name: string;
  readonly pod: { readonly name: string; readonly uid: string; readonly address: string; readonly node: string };
}

/** An installation with three NATS servers and several gateways, without real pods. */
export class ScaleCluster implements AsyncDisposable {
  readonly kube: BenchCluster;
  readonly nats: NatsCluster;
  readonly namespaces: readonly string[];
  /** The CA of the gateways. */
  readonly authority: string;
  readonly gateways: ServerProcess[] = [];
  readonly ports: number[] = [];
  operator: OperatorProcess;
  readonly #agents: ReadyWatch<StoredAgent>;
  readonly #pods: ReadyWatch<Pod>;
  readonly #kubeconfig: string;
  /** Each process has its own files. */
  #launches = 0;
  /** The folder with the bundles of operator and gateway. */
  readonly #bundles: string;

  private constructor(
    parts: Pick<ScaleCluster, 'kube' | 'nats' | 'namespaces' | 'authority' | 'operator'>,
    watches: { agents: ReadyWatch<StoredAgent>; pods: ReadyWatch<Pod>; kubeconfig: string; bundles: string },
  ) {
    this.kube = parts.kube;
    this.nats = parts.nats;
    this.namespaces = parts.namespaces;
    this.authority = parts.authority;
    this.operator = parts.operator;
    this.#agents = watches.agents;
    this.#pods = watches.pods;
    this.#kubeconfig = watches.kubeconfig;
    this.#bundles = watches.bundles;
  }

  static async open(namespaceCount: number, disks = { slowDisks: false }): Promise<ScaleCluster> {
    const started: NatsCluster[] = [];
    const startNats = async () => {
      const cluster = await NatsCluster.start(disks);
      started.push(cluster);
      return cluster;
    };
    const bundles = await mkdtemp(join(CACHE, 'bench-'));
    const kube = await BenchCluster.open(undefined, startNats);
    try {
      await Promise.all([bundle('operator', bundles), bundle('gateway', bundles)]);
      const [nats] = started;
      if (nats === undefined) throw new Error('NATS has not started');
      const names = Array.from({ length: namespaceCount }, (_, index) => `team-${index}`);
      await runConcurrently(names.length, NAMESPACE_CONCURRENCY, async (index) => {
        await kube.createAgentsNamespace(names[index] ?? '');
        return 0;
      });
      const { authority } = await issueTlsIdentity(kube.folder, 'gateway', GATEWAY_NAME);
      await writeFile(join(kube.folder, 'delivery-token.key'), randomBytes(32));
      const kubeconfig = await kube.kubeconfigOf(RELEASE, 'temper-gateway');
      const operator = await kube.startOperator(OPERATOR_CHANGES, operatorIn(bundles));
      await operator.waitUntilReady();
      const [agents, pods] = await Promise.all([runningAgents(kube), readyPods(kube)]);
      return new ScaleCluster(
        { kube, nats, namespaces: names, authority, operator },
        { agents, pods, kubeconfig, bundles },
      );
    } catch (error) {
      await kube[Symbol.asyncDispose]();
      await rm(bundles, { recursive: true, force: true });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway.end('SIGKILL')));
    await Promise.all([this.#agents[Symbol.asyncDispose](), this.#pods[Symbol.asyncDispose]()]);
    await this.kube[Symbol.asyncDispose]();
    await rm(this.#bundles, { recursive: true, force: true });
  }

  /** Starts gateways up to this number, and waits until they are ready. */
  async startGateways(count: number): Promise<void> {
    const names = Array.from({ length: count - this.ports.length }, (_, index) => `gateway${index}`);
    this.ports.push(...Object.values(await freePorts(...names)));
    await Promise.all(
      this.ports.map(async (_, index) => (this.gateways[index] === undefined ? this.startGateway(index) : undefined)),
    );
  }

  /** Starts the gateway with this index, with the port that it had before, if any. */
  async startGateway(index: number): Promise<void> {
    const { kube, nats } = this;
    const at = (file: string) => join(kube.folder, file);
    const config = {
      listen: { host: '127.0.0.1', port: this.ports[index] },
      tls: { certificate: at('gateway-tls.crt'), key: at('gateway-tls.key') },
      nats: { servers: nats.urls, seedFile: nats.seedFile('gateway'), caFile: nats.caFile },
      kubernetes: { kubeconfig: this.#kubeconfig },
      deliveryTokenKeys: [at('delivery-token.key')],
      maxConnections: MAX_CONNECTIONS,
      logLevel: 'warn',
    };
    const program = join(this.#bundles, 'gateway.mjs');
    const launch = { folder: kube.folder, role: 'gateway', config, env: NODE_ENVIRONMENT, program } as const;
    this.#launches += 1;
    const gateway = await ServerProcess.start(launch, `gateway-${index}-${this.#launches}`);
    this.gateways[index] = gateway;
    await gateway.waitUntil('ready', () => gateway.isReady());
  }

  /** Replaces the operator by a new process. */
  async startOperator(): Promise<OperatorProcess> {
    this.operator = await this.kube.startOperator(OPERATOR_CHANGES, operatorIn(this.#bundles));
    return this.operator;
  }

  /** Starts processes that have ended on their own, as a kubelet does, and returns their number. An operator ends when it loses its Lease. */
  async restartEnded(): Promise<number> {
    const ended = this.gateways.flatMap((gateway, index) => (gateway.hasEnded ? [index] : []));
    await Promise.all(ended.map((index) => this.startGateway(index)));
    if (!this.operator.hasEnded) return ended.length;
    await (await this.startOperator()).waitUntilReady();
    return ended.length + 1;
  }

  /** Creates agents up to `count`, evenly over the namespaces, and waits until each is Running. */
  createAgents(count: number, concurrency: number): Promise<Times> {
    const created = this.#agents.list().length;
    return runConcurrently(count - created, concurrency, (index) => {
      const number = created + index;
      const namespace = this.namespaces[number % this.namespaces.length] ?? '';
      return createAgent(this.kube, this.#agents, namespace, `agent-${Math.floor(number / this.namespaces.length)}`);
    });
  }

  boundAgents(): BoundAgent[] {
    const pods = new Map(this.#pods.list().map((pod) => [pod.metadata.uid, pod]));
    return this.#agents.list().flatMap(({ metadata: { namespace, name }, status }) => {
      const pod = pods.get(status?.pod?.uid ?? '');
      const node = pod?.spec?.nodeName;
      const address = addressOf(pod?.status);
      if (status?.pod === undefined || node === undefined || address === undefined) return [];
      return [{ namespace, name, pod: { name: status.pod.name, uid: status.pod.uid, address, node } }];
    });
  }

  /** A token of the agent's pod, which only its node may request. */
  async podToken({ namespace, pod }: BoundAgent): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${NAMESPACE_OBJECTS.agentServiceAccount}/token`;
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid };
    const spec = { audiences: [TOKEN_AUDIENCE], expirationSeconds: TOKEN_SECONDS, boundObjectRef };
    const object = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
    const as = { user: `system:node:${pod.node}`, groups: ['system:nodes'] };
    const { status, body } = await this.kube.plane.admin.call('POST', path, { body: object, as });
    if (status !== 201) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return (body['status'] as { token: string }).token;
  }

  async userToken(namespace: string): Promise<string> {
    const ref = { namespace, name: NAMESPACE_OBJECTS.usersServiceAccount };
    const request = { audiences: [TOKEN_AUDIENCE], expirationSeconds: TOKEN_SECONDS };
    return (await this.kube.client.createToken(ref, request, NEVER_ABORTED)).token;
  }
}

/** The bundle of the image. */
const operatorIn = (bundles: string) => ({ program: join(bundles, 'operator.mjs'), env: NODE_ENVIRONMENT });
const OPERATOR_CHANGES = { nats: { replicas: 3, server: { storeBytes: STORE_BYTES } } };

function addressOf(status: Pod['status']): string | undefined {
  return (status as { podIP?: string } | undefined)?.podIP;
}
