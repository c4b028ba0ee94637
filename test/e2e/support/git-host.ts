import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { type Gitea, startGitea } from '../../cluster/gitea.ts';
import { GiteaRepository } from '../../support/gitops/gitea-repository.ts';
import { GITOPS_ACCOUNT } from '../../support/gitops/gitops-controller.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from './installed-cluster.ts';

const NAMESPACE = 'git';
const HOST = `gitea.${NAMESPACE}.svc.cluster.local`;
const CREDENTIAL = 'tools-repository';
/** The name in `spec.promotion.toShared.gitOps.connection`. */
export const CONNECTION = 'tools';
/** The folder of the repository with the tools. */
export const TREE = 'tools';

/** A Gitea on the machine that outlives clusters, with a repository that their gateways reach through a Service. */
export class GitHost implements AsyncDisposable {
  readonly #gitea: Gitea;
  readonly repository: GiteaRepository;
  #forwarder: Server | undefined;

  private constructor(gitea: Gitea) {
    this.#gitea = gitea;
    this.repository = new GiteaRepository(gitea);
  }

  static async start(): Promise<GitHost> {
    const host = new GitHost(await startGitea({ names: [HOST] }));
    await host.repository.create();
    return host;
  }

  /** Makes the Gitea and its credential known to the cluster, before the chart is installed. Returns the values of the chart. */
  async connect(cluster: InstalledCluster, namespaces: readonly string[]): Promise<string[]> {
    const { port, token, caFile } = this.#gitea;
    const machine = await this.#forward(cluster);
    await cluster.apply(...namespaceObjects(), ...serviceObjects(machine, port));
    await cluster.apply(
      { ...released('Secret'), stringData: { token } },
      { ...released('ConfigMap'), data: { 'ca.crt': await readFile(caFile, 'utf8') } },
    );
    const connection = {
      name: CONNECTION,
      hosts: [`${HOST}:${port}`],
      private: true,
      namespaces,
      credential: { existingSecret: CREDENTIAL, key: 'token' },
      caBundle: { configMap: CREDENTIAL, key: 'ca.crt' },
      git: {
        type: 'Gitea',
        apiUrl: `https://${HOST}:${port}/api/v1`,
        repository: 'owner/tools',
        approver: GITOPS_ACCOUNT,
      },
    };
    const approvers = `admissionPolicies.approvers=${JSON.stringify([GITOPS_ACCOUNT])}`;
    return ['--set-json', `gateway.connections=${JSON.stringify([connection])}`, '--set-json', approvers];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#forwarder?.close();
    await this.#gitea[Symbol.asyncDispose]();
  }

  /** Gitea listens on loopback only. Returns the machine's address at the link to the node, where a forwarder listens. */
  async #forward({ node }: InstalledCluster): Promise<string> {
    const { port } = this.#gitea;
    const machine = new URL(node.url).hostname.replace(/\d+$/, '1');
    this.#forwarder?.close();
    this.#forwarder = createServer((socket) => {
      const upstream = connect(port, '127.0.0.1');
      for (const end of [socket, upstream]) end.on('error', () => [socket, upstream].forEach((each) => each.destroy()));
      socket.pipe(upstream).pipe(socket);
    }).listen(port, machine);
    await once(this.#forwarder, 'listening');
    // The machine has no route to the addresses of pods.
    const chain = 'add chain ip test-git leaving { type nat hook postrouting priority 100; }';
    const rule = `add rule ip test-git leaving ip daddr ${machine} masquerade`;
    await node.onNode('nft', `add table ip test-git; ${chain}; ${rule}`);
    return machine;
  }
}

function namespaceObjects(): object[] {
  return [NAMESPACE, RELEASE_NAMESPACE, 'flux-system'].map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  }));
}

/** A Service without a selector, its endpoint, and the rights of the account that applies the repository. */
function serviceObjects(address: string, port: number): object[] {
  const metadata = { name: 'gitea', namespace: NAMESPACE };
  const [, , namespace, name] = GITOPS_ACCOUNT.split(':');
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port, protocol: 'TCP' }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'gitea' } },
      addressType: 'IPv4',
      ports: [{ name: '', port, protocol: 'TCP' }],
      endpoints: [{ addresses: [address] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'gitops-controller' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
  ];
}

function released(kind: string) {
  return { apiVersion: 'v1', kind, metadata: { name: CREDENTIAL, namespace: RELEASE_NAMESPACE } };
}
