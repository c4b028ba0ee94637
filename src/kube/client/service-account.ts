import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, TemperError } from '../../lib/errors.ts';
import type { Credentials, Environment, LoadedCluster } from './loaded-cluster.ts';

/** The folder into which the kubelet mounts the token, the CA and the namespace of a pod's ServiceAccount. */
const FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * The cluster of this pod, as client-go's InClusterConfig: the address from the environment, the token and the CA from files. The kubelet
 * replaces both files before they expire, so every read reads them. Throws `TEMPER_KUBE_CONFIG`.
 */
export async function loadServiceAccount(environment: Environment, folder = FOLDER): Promise<LoadedCluster> {
  const server = serverOf(environment);
  const read = async (): Promise<Credentials> => {
    const [token, ca] = await Promise.all([readMounted(join(folder, 'token')), readMounted(join(folder, 'ca.crt'))]);
    return { headers: { authorization: `Bearer ${token.trim()}` }, tls: { ca } };
  };
  // Fails at startup instead of at the first call.
  await read();
  const namespace = await readMounted(join(folder, 'namespace'));
  return { server, namespace: namespace.trim(), read };
}

function serverOf(environment: Environment): URL {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = environment;
  // An IPv6 address needs brackets in a URL.
  const text = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (host !== '' && URL.canParse(text)) return new URL(text);
  throw new TemperError(
    'TEMPER_KUBE_CONFIG',
    'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not the address of an API server; run in a pod, or set a kubeconfig',
  );
}

async function readMounted(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const message = `the ServiceAccount of the pod cannot be read: ${messageOf(error, 200)}; set automountServiceAccountToken of the pod to true`;
    throw new TemperError('TEMPER_KUBE_CONFIG', message, { cause: error });
  }
}
