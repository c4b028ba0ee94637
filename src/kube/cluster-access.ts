import type { KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';

/** Where the address of the API server and the credentials are read from. */
export type ClusterSource =
  /** `KUBECONFIG`, the file in the home folder, or the ServiceAccount of the pod, in this order. */
  | { readonly kind: 'default'; readonly context?: string }
  /** The ServiceAccount of the pod. */
  | { readonly kind: 'cluster' }
  | { readonly kind: 'file'; readonly path: string; readonly context?: string };

/** What a request carries. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsFacts;
}

export interface TlsFacts {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface ClusterAccess {
  readonly server: URL;
  /** The name of the context, for people. */
  readonly context?: string;
  /** Namespace of the context or of the pod, when there is one. */
  readonly namespace: string | undefined;
  /** Tokens and certificates as they are now; files are read again a few seconds after they were last. */
  credentials(): Promise<Credentials>;
  /** Forgets every token and certificate that was read. Called after the server refused them. */
  refresh(): Promise<void>;
}

/** How long what was read of files is taken for true, in milliseconds. */
const FRESH = 10_000;
/** What the package makes up when it finds nothing. */
const NOWHERE = 'http://localhost:8080';

/** Throws `TEMPER_KUBE_CONFIG` when no cluster can be read from the source. */
export async function loadClusterAccess(source: ClusterSource, clock: Clock): Promise<ClusterAccess> {
  let config = await load(source);
  let known: { readonly at: number; readonly credentials: Promise<Credentials> } | undefined;
  return {
    server: serverOf(config),
    context: config.getCurrentContext(),
    namespace: config.getContextObject(config.currentContext)?.namespace,
    credentials() {
      const now = clock.monotonic();
      if (known === undefined || now - known.at > FRESH) {
        const entry = { at: now, credentials: readCredentials(config) };
        known = entry;
        entry.credentials.catch(() => {
          if (known === entry) known = undefined;
        });
      }
      return known.credentials;
    },
    async refresh() {
      // Every cache of tokens and of what plug-ins said lives in the configuration.
      config = await load(source);
      known = undefined;
    },
  };
}

async function load(source: ClusterSource): Promise<KubeConfig> {
  // The package takes half a second and much memory to load: not before somebody speaks to a cluster.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  try {
    if (source.kind === 'file') config.loadFromFile(source.path);
    else if (source.kind === 'cluster') config.loadFromCluster();
    else config.loadFromDefault();
  } catch (error) {
    throw new TemperError('TEMPER_KUBE_CONFIG', `the kubeconfig cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (source.kind !== 'cluster' && source.context !== undefined) setContext(config, source.context);
  serverOf(config);
  return config;
}

function setContext(config: KubeConfig, context: string): void {
  if (config.getContextObject(context) === null) {
    const known = config.getContexts().map(({ name }) => name);
    throw new TemperError('TEMPER_KUBE_CONFIG', `no context ${context}; there are: ${known.join(', ') || 'none'}`);
  }
  config.setCurrentContext(context);
}

function serverOf(config: KubeConfig): URL {
  const cluster = config.getCurrentCluster();
  if (cluster?.server === NOWHERE) {
    throw new TemperError('TEMPER_KUBE_CONFIG', 'no kubeconfig was found and this is no pod; set KUBECONFIG');
  }
  if (cluster === null) throw new TemperError('TEMPER_KUBE_CONFIG', 'the current context names no cluster');
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
    // What a plug-in printed may be a secret: it is the cause, not the message.
    throw new TemperError('TEMPER_KUBE_CONFIG', 'the credentials of the kubeconfig cannot be read', { cause: error });
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim();
  if (typeof options.auth === 'string')
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { headers, tls: tlsFacts(options) };
}

function tlsFacts({ ca, cert, key, servername, rejectUnauthorized }: HttpsOptions): TlsFacts {
  const isPem = (value: unknown): value is string | Buffer => typeof value === 'string' || Buffer.isBuffer(value);
  return {
    ...(isPem(ca) ? { ca } : {}),
    ...(isPem(cert) ? { cert } : {}),
    ...(isPem(key) ? { key } : {}),
    ...(servername === undefined ? {} : { servername }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  };
}
