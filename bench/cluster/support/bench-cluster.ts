import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { LABELS } from '../../../src/api/cluster.ts';
import type { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { createTransport, type Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type OperatorConfig, parseOperatorConfig } from '../../../src/operator/config.ts';
import { type ControlPlane, startControlPlane } from '../../../test/cluster/control-plane.ts';
import { installCrds } from '../../../test/support/api-server/crds.ts';
import { renderChart } from '../../../test/cluster/helm.ts';
import { writeTokenKubeconfig } from '../../../test/cluster/kubeconfig.ts';
import { createAll, createNamespace } from '../../../test/cluster/objects.ts';
import { killServer, type Server, startServer } from '../../../test/cluster/process.ts';
import { type ToolName, tool } from '../../../test/cluster/tools.ts';
import { startNatsFixture } from '../../../test/support/nats/nats-fixture.ts';
import { stages } from './kwok-stages.ts';
import { measureLoad, type LoadReport } from './load.ts';
import { OperatorProcess } from './operator-process.ts';
import type { ServerLaunch } from './server-process.ts';
import { NO_METRICS } from '../../../test/support/stubs.ts';
import { buildTrustPolicy } from '../../../test/support/builders.ts';

export const RELEASE = 'temper-system';
const NODES = 2;
/** Addresses of this machine, from which clients that simulate pods connect. */
const POD_ADDRESSES = '127.64.0.1/10';
/** Kinds of the chart that are not created: workloads need nodes, and the CRDs are installed separately. */
const WORKLOADS = new Set(['Deployment', 'StatefulSet', 'CustomResourceDefinition']);

/** The warm pool of the sandbox class. */
export interface Pool {
  readonly namespace: string;
  readonly size: number;
}

/** Replaces parts of the operator's configuration. */
type OperatorChanges = Omit<Partial<OperatorConfig>, 'nats'> & { nats?: Partial<NonNullable<OperatorConfig['nats']>> };

/** What runs as the operator. By default it runs from sources. */
type OperatorProgram = Pick<ServerLaunch, 'program' | 'env'>;

/** The NATS servers of the cluster. */
export interface BenchNats extends AsyncDisposable {
  readonly url: string;
  readonly caFile: string;
  seedFile(user: string): string;
}

/**
 * The chart on a separate control plane with fake nodes. Roles, admission policies and the operator's configuration are those of a real
 * installation, and NATS is real. Operators are started separately. Disposing stops all processes and removes all files.
 */
export class BenchCluster implements AsyncDisposable {
  readonly plane: ControlPlane;
  /** A client with the rights of a cluster administrator. */
  readonly client: KubeClient;
  readonly transport: Transport;
  readonly operatorUser = `system:serviceaccount:${RELEASE}:temper-operator`;
  config: OperatorConfig | undefined;
  readonly folder: string;
  readonly #nats: BenchNats;
  readonly #servers: Server[] = [];
  readonly #operators: OperatorProcess[] = [];
  readonly #atExit: () => void;

  private constructor(plane: ControlPlane, nats: BenchNats, transport: Transport, folder: string) {
    this.plane = plane;
    this.transport = transport;
    this.client = createKubeClient(transport);
    this.#nats = nats;
    this.folder = folder;
    // Stops processes and removes files when the run ends by a signal.
    this.#atExit = () => {
      for (const { child } of this.#servers) child.kill('SIGKILL');
      for (const path of [folder, dirname(plane.kubeconfig)]) rmSync(path, { recursive: true, force: true });
    };
    process.once('exit', this.#atExit);
  }

  static async open(pool?: Pool, startNats: () => Promise<BenchNats> = startNatsFixture): Promise<BenchCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'temper-bench-cluster-'));
    const [plane, nats] = await Promise.all([startControlPlane({ controllerManager: true, audit: true }), startNats()]);
    const access = await loadClusterAccess({ kind: 'file', path: plane.kubeconfig }, systemClock);
    const transport = createTransport({ access, clock: systemClock, metrics: NO_METRICS });
    const cluster = new BenchCluster(plane, nats, transport, folder);
    try {
      await cluster.#install(pool);
      await cluster.#startNodes();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#operators.map((operator) => operator.end('SIGKILL')));
    await Promise.all(this.#servers.map(killServer));
    await this.transport[Symbol.asyncDispose]();
    await Promise.all([this.plane[Symbol.asyncDispose](), this.#nats[Symbol.asyncDispose]()]);
    await rm(this.folder, { recursive: true, force: true });
    process.removeListener('exit', this.#atExit);
  }

  /** Starts an operator replica. Does not wait until its caches are synced. */
  async startOperator(changes: OperatorChanges = {}, program: OperatorProgram = {}): Promise<OperatorProcess> {
    const { url, caFile } = this.#nats;
    const nats = { url, seedFile: this.#nats.seedFile('operator'), caFile, ...changes.nats };
    const place = {
      ...program,
      folder: this.folder,
      kubeconfig: await this.kubeconfigOf(RELEASE, 'temper-operator'),
      config: { ...this.config, ...changes, nats },
    };
    const operator = await OperatorProcess.launch(place, `operator-${this.#operators.length}`);
    this.#operators.push(operator);
    return operator;
  }

  /** A client with the account of the operator. */
  async connectAsOperator(): Promise<AsyncDisposable & { readonly client: KubeClient }> {
    const path = await this.kubeconfigOf(RELEASE, 'temper-operator');
    const access = await loadClusterAccess({ kind: 'file', path }, systemClock);
    const transport = createTransport({ access, clock: systemClock, metrics: NO_METRICS });
    return {
      client: createKubeClient(transport),
      [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
    };
  }

  /** Creates a protected namespace with a policy without restrictions. */
  async createAgentsNamespace(name: string): Promise<void> {
    await createNamespace(this.plane, name, { [LABELS.agents]: 'true' });
    await createAll(this.plane, [buildTrustPolicy(name)]);
  }

  /** Starts to measure the processor time of the control plane and the operators; call the result to get the report. */
  measure(...operators: readonly OperatorProcess[]): () => LoadReport {
    return this.measureProcesses(operators.map((operator): [string, number] => ['operator', operator.pid]));
  }

  /** The same with any other processes, by name. */
  measureProcesses(others: readonly (readonly [string, number])[]): () => LoadReport {
    const parts: (readonly [string, number])[] = [
      ['API server', this.plane.pidOf('kube-apiserver')],
      ['etcd', this.plane.pidOf('etcd')],
      ...others,
      ...this.#servers.map(({ name, child }): [string, number] => [name, child.pid ?? 0]),
      ['load generator', process.pid],
    ];
    return measureLoad(Object.fromEntries(parts));
  }

  async #install(pool?: Pool): Promise<void> {
    const resources = { cpu: '250m', memory: '384Mi', ephemeralStorage: '128Mi' };
    const classes = [{ name: 'standard', resources, workspace: '1Gi', pool: pool === undefined ? [] : [pool] }];
    await installCrds(this.plane.admin);
    await createNamespace(this.plane, RELEASE);
    if (pool !== undefined) await this.createAgentsNamespace(pool.namespace);
    const objects = await renderChart('--set-json', `sandboxClasses=${JSON.stringify(classes)}`);
    await createAll(
      this.plane,
      objects.filter(({ kind }) => !WORKLOADS.has(kind)),
    );
    const file = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'temper-operator');
    const { 'operator.yaml': text = '' } = (file?.['data'] ?? {}) as Record<string, string>;
    this.config = parseOperatorConfig(text);
  }

  async #startNodes(): Promise<void> {
    const administrators = ['bench-scheduler', 'bench-nodes'];
    await createAll(this.plane, administrators.flatMap(administrator));
    const file = join(this.folder, 'stages.yaml');
    await writeFile(
      file,
      stages()
        .map((stage) => JSON.stringify(stage))
        .join('\n---\n'),
    );
    const limits = ['--kube-api-qps=1000', '--kube-api-burst=1000'];
    const scheduler = await this.kubeconfigOf('kube-system', 'bench-scheduler');
    await this.#start(
      'kube-scheduler',
      `--kubeconfig=${scheduler}`,
      '--leader-elect=false',
      '--secure-port=0',
      ...limits,
    );
    const nodes = await this.kubeconfigOf('kube-system', 'bench-nodes');
    await this.#start(
      'kwok',
      `--kubeconfig=${nodes}`,
      '--manage-all-nodes',
      `--config=${file}`,
      `--cidr=${POD_ADDRESSES}`,
      '--node-lease-duration-seconds=40',
      '--v=WARN',
    );
    const names = Array.from({ length: NODES }, (_, index) => `fake-${index}`);
    await createAll(this.plane, names.map(node));
  }

  async #start(name: ToolName, ...flags: string[]): Promise<void> {
    this.#servers.push(await startServer(this.folder, { name, path: await tool(name), flags }));
  }

  /** Writes a kubeconfig for a ServiceAccount and returns its path. */
  async kubeconfigOf(namespace: string, account: string): Promise<string> {
    const request = { audiences: [], expirationSeconds: 86_400 };
    const ref = { namespace, name: account };
    const { token } = await this.client.createToken(ref, request, AbortSignal.timeout(30_000));
    return writeTokenKubeconfig(this.folder, this.plane, { name: account, token });
  }
}

function administrator(name: string) {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'kube-system' } };
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'kube-system' }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
  };
  return [account, binding];
}

function node(name: string) {
  const amounts = { cpu: '10k', memory: '40Ti', pods: '10k', 'ephemeral-storage': '1Pi' };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { capacity: amounts, allocatable: amounts } };
}
