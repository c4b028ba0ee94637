import { resolve } from 'node:path';
import { createKubeClient } from '../../kube/client/http-kube-client.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import { type ClusterAccess, type ClusterSource, loadClusterAccess } from '../../kube/client/cluster-access.ts';
import { createTransport } from '../../kube/client/transport.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, member, textAt } from '../../lib/json.ts';
import { assertInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';
import type { RawResponse } from './raw-request.ts';
import type { ClusterOptions } from './options.ts';

/** The cluster and namespace that a verb acts on. */
export interface Cluster extends AsyncDisposable {
  readonly access: ClusterAccess;
  readonly kube: KubeClient;
  readonly namespace: string;
  readonly temperNamespace: string | undefined;
  /** `context/namespace`; printed by every verb that changes something. */
  readonly location: string;
}

const NO_METRICS = { count: () => {}, gauge: () => {}, observe: () => {}, watch: () => {} };

/** Opens the cluster of the options. Throws TEMPER_USAGE for a kubeconfig file that cannot be read, and TEMPER_KUBE_CONFIG. */
export async function openCluster(options: ClusterOptions, io: CliIo): Promise<Cluster> {
  if (options.kubeconfig !== undefined) await assertInputFile(options.kubeconfig, '--kubeconfig', io);
  const access = await loadClusterAccess(sourceOf(options, io), systemClock);
  const transport = createTransport({ access, clock: systemClock, metrics: NO_METRICS, component: 'cli' });
  const { TEMPER_NAMESPACE } = io.environment;
  const namespace = options.namespace ?? access.namespace ?? 'default';
  return {
    access,
    kube: createKubeClient(transport),
    namespace,
    temperNamespace: options.temperNamespace ?? TEMPER_NAMESPACE,
    location: `${printable(access.context ?? '-', 253)}/${printable(namespace, 63)}`,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

function sourceOf({ kubeconfig, context }: ClusterOptions, io: CliIo): ClusterSource {
  const contextOption = context === undefined ? {} : { context };
  if (kubeconfig === undefined) return { kind: 'default', ...contextOption };
  return { kind: 'file', path: resolve(io.cwd, kubeconfig), ...contextOption };
}

const FORBIDDEN = 403;
const NOT_FOUND = 404;

/** Converts an error of the API server to a TemperError; `doing` names the attempted action. Returns other errors unchanged. */
export function toTemperError(error: unknown, doing: string, { location }: Cluster): unknown {
  if (!(error instanceof ApiError)) return error;
  const options = { cause: error };
  const message = `${doing} in ${location}: ${printable(error.message, 800)}`;
  if (error.status === NOT_FOUND) return new TemperError('TEMPER_NOT_FOUND', message, options);
  if (error.status === FORBIDDEN) return new TemperError('TEMPER_CLUSTER_FORBIDDEN', message, options);
  return new TemperError('TEMPER_CLUSTER_REFUSED', message, options);
}

/** The error in a response of the API server to `callApi`. */
export function errorFrom({ status, text }: RawResponse): ApiError {
  let body: Json = text;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    // Proxies between client and API server respond in plain text.
  }
  const message = typeof body === 'string' ? body : textAt(body, ['message']);
  return new ApiError(status, textAt(member({ body }, 'body'), ['reason']), printable(message, 800));
}
