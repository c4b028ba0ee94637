import { dirname, join } from 'node:path';
import { writeKubeconfig } from '../../cluster/kubeconfig.ts';
import { writeIdentity } from '../../cluster/pki.ts';
import type { CommandResult, InstalledCluster } from './installed-cluster.ts';

/** Serial numbers of certificates; those of the cluster itself are lower. */
const FIRST_SERIAL = 1_000;

/** A user with a client certificate, and the rights of the ClusterRoles that are bound to it. */
export interface ClusterUser {
  readonly name: string;
  /** The path of the file. */
  readonly kubeconfig: string;
  kubectl(...args: string[]): Promise<string>;
  temper(...args: string[]): Promise<CommandResult>;
}

/** Creates a user of the cluster and binds the ClusterRoles to it in the namespace. */
export async function createClusterUser(
  cluster: InstalledCluster,
  name: string,
  { namespace, roles }: { namespace: string; roles: readonly string[] },
): Promise<ClusterUser> {
  const { node } = cluster;
  const folder = dirname(node.kubeconfig);
  await writeIdentity(join(folder, 'pki'), { name, subject: `/CN=${name}` }, FIRST_SERIAL);
  const kubeconfig = await writeKubeconfig(folder, node.url, name);
  for (const role of roles) {
    const binding = ['create', 'rolebinding', `${role}-${name}`, `--clusterrole=${role}`, `--user=${name}`];
    await cluster.kubectl(...binding, '-n', namespace);
  }
  return {
    name,
    kubeconfig,
    kubectl: (...args) => cluster.kubectl('--kubeconfig', kubeconfig, ...args),
    temper: (...args) => cluster.temperWith({ KUBECONFIG: kubeconfig }, ...args),
  };
}
