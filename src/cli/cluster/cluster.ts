import { resolve } from 'node:path';
import { createKubeClient } from '../../kube/client/http-kube-client.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import {
  type ClusterAccess,
  type ClusterSource,
  loadClusterAccess,
  NO_KUBECONFIG,
} from '../../kube/client/cluster-access.ts';
import { createTransport } from '../../kube/client/transport.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, member, textAt } from '../../lib/json.ts';
import { assertInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';
import type { RawResponse } from './raw-request.ts';
import { type ClusterOptions, isPlugin } from './options.ts';

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

/** The options of a verb that acts on a state folder when none of them selects a cluster. */
interface StateChoice {
  state?: string;
  allNamespaces?: boolean;
}

/** Opens the cluster of the options. Throws TEMPER_USAGE for a kubeconfig file that cannot be read, and TEMPER_KUBE_CONFIG. */
export async function openCluster(options: ClusterOptions & StateChoice, io: CliIo): Promise<Cluster> {
  if (options.kubeconfig !== undefined) await assertInputFile(options.kubeconfig, '--kubeconfig', io);
  const access = await loadClusterAccess(sourceOf(options, io), systemClock).catch((error: unknown) => {
    throw isMissing(error) ? missingKubeconfig(options, io) : error;
  });
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

function isMissing(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_KUBE_CONFIG') && error.message === NO_KUBECONFIG;
}

/** Names every way to a kubeconfig, and the way back to the state folder for a verb that an option turned to the cluster. */
function missingKubeconfig({ state, namespace, allNamespaces }: ClusterOptions & StateChoice, io: CliIo): TemperError {
  const message = `${NO_KUBECONFIG}, or name it with --kubeconfig FILE`;
  const option = allNamespaces === true ? '-A' : namespace === undefined ? undefined : '-n';
  if (state === undefined || option === undefined || isPlugin(io))
    return new TemperError('TEMPER_KUBE_CONFIG', message);
  const way = `${option} asks a cluster; leave it out to read the state folder ${printable(state, 200)}`;
  return new TemperError('TEMPER_KUBE_CONFIG', `${message}. ${way}`);
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
