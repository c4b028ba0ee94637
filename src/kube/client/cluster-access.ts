import type { KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import type { Credentials, Environment, LoadedCluster, TlsCredentials } from './loaded-cluster.ts';
import { loadServiceAccount } from './service-account.ts';

/** The source of the API server's address and of the credentials. */
export type ClusterSource =
  /** `KUBECONFIG`, the file in the home folder, or the ServiceAccount of the pod, in this order. */
  | { readonly kind: 'default'; readonly context?: string }
  /** The ServiceAccount of the pod, with the address of the API server in its environment. */
  | { readonly kind: 'cluster'; readonly environment: Environment }
  | { readonly kind: 'file'; readonly path: string; readonly context?: string };

/** The source for a role of an installation: the ServiceAccount of its pod, unless the environment names a kubeconfig. */
export function roleSource(environment: Environment): ClusterSource {
  const isPod = environment['KUBECONFIG'] === undefined && environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  return isPod ? { kind: 'cluster', environment } : { kind: 'default' };
}

export interface ClusterAccess {
  readonly server: URL;
  /** The name of the kubeconfig context, for display. */
  readonly context?: string;
  /** The namespace of the context or of the pod; undefined when it has none. */
  readonly namespace: string | undefined;
  /** The current tokens and certificates. Cached for a few seconds; then files are read again. Throws `TEMPER_KUBE_CONFIG`. */
  credentials(): Promise<Credentials>;
  /** Drops all cached tokens and certificates. Called after the API server responded 401. */
  refresh(): Promise<void>;
}

const CACHE_TTL_MS = 10_000;
/** The message of the error of a source without any configuration. */
export const NO_KUBECONFIG =
  'no kubeconfig was found and this process does not run in a pod; set KUBECONFIG to the path of a kubeconfig file';
/** The server address that @kubernetes/client-node uses when it finds no configuration. */
const FALLBACK_SERVER = 'http://localhost:8080';

/** Throws `TEMPER_KUBE_CONFIG` when the source contains no usable cluster. */
export async function loadClusterAccess(source: ClusterSource, clock: Clock): Promise<ClusterAccess> {
  let loaded = await load(source);
  let cached: { readonly at: number; readonly credentials: Promise<Credentials> } | undefined;
  const { server, context, namespace } = loaded;
  return {
    server,
    ...(context === undefined ? {} : { context }),
    namespace,
    credentials() {
      const now = clock.monotonic();
      if (cached === undefined || now - cached.at > CACHE_TTL_MS) {
        const entry = { at: now, credentials: loaded.read() };
        cached = entry;
        entry.credentials.catch(() => {
          if (cached === entry) cached = undefined;
        });
      }
      return cached.credentials;
    },
    async refresh() {
      // A loaded kubeconfig contains every cache of tokens and of credential plugin output.
      loaded = await load(source);
      cached = undefined;
    },
  };
}

/** The kubeconfig package is not loaded in a pod: it takes half a second and 14 MB of memory. */
async function load(source: ClusterSource): Promise<LoadedCluster> {
  if (source.kind === 'cluster') return loadServiceAccount(source.environment);
  const config = await loadKubeconfig(source);
  return {
    server: serverOf(config),
    context: config.getCurrentContext(),
    namespace: config.getContextObject(config.currentContext)?.namespace,
    read: () => readCredentials(config),
  };
}

async function loadKubeconfig(source: Exclude<ClusterSource, { kind: 'cluster' }>): Promise<KubeConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  try {
    if (source.kind === 'file') config.loadFromFile(source.path);
    else config.loadFromDefault();
  } catch (error) {
    throw new TemperError('TEMPER_KUBE_CONFIG', `the kubeconfig cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (source.context !== undefined) setContext(config, source.context);
  serverOf(config);
  return config;
}

function setContext(config: KubeConfig, context: string): void {
  if (config.getContextObject(context) === null) {
    const names = config.getContexts().map(({ name }) => name);
    throw new TemperError(
      'TEMPER_KUBE_CONFIG',
      `no context ${context}; existing contexts: ${names.join(', ') || 'none'}`,
    );
  }
  config.setCurrentContext(context);
}

function serverOf(config: KubeConfig): URL {
  const cluster = config.getCurrentCluster();
  if (cluster?.server === FALLBACK_SERVER) {
    throw new TemperError('TEMPER_KUBE_CONFIG', NO_KUBECONFIG);
  }
  if (cluster === null) throw new TemperError('TEMPER_KUBE_CONFIG', 'the current context has no cluster');
  if (cluster.proxyUrl !== undefined && cluster.proxyUrl !== '') {
    throw new TemperError('TEMPER_KUBE_CONFIG', `cluster ${cluster.name}: proxy-url is not supported; remove it`);
  }
  if (!URL.canParse(cluster.server) || new URL(cluster.server).protocol !== 'https:') {
    throw new TemperError('TEMPER_KUBE_CONFIG', `cluster ${cluster.name}: server must be an https URL`);
  }
  return new URL(cluster.server);
}

interface HttpsOptions {
  headers?: Record<string, unknown>;
  auth?: string | null;
  ca?: unknown;
  cert?: unknown;
  key?: unknown;
  servername?: string;
  rejectUnauthorized?: boolean;
}

async function readCredentials(config: KubeConfig): Promise<Credentials> {
  const options: HttpsOptions = {};
  try {
    await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  } catch (error) {
    // The output of a credential plugin may contain a secret, so it goes into the cause, not the message.
    throw new TemperError('TEMPER_KUBE_CONFIG', 'the credentials of the kubeconfig cannot be read', { cause: error });
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim();
  if (typeof options.auth === 'string')
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { headers, tls: tlsCredentials(options) };
}

function tlsCredentials({ ca, cert, key, servername, rejectUnauthorized }: HttpsOptions): TlsCredentials {
  const isPem = (value: unknown): value is string | Buffer => typeof value === 'string' || Buffer.isBuffer(value);
  return {
    ...(isPem(ca) ? { ca } : {}),
    ...(isPem(cert) ? { cert } : {}),
    ...(isPem(key) ? { key } : {}),
    ...(servername === undefined ? {} : { servername }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  };
}
