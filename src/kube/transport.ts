import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { Metrics } from './metrics.ts';

export interface KubeRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with its query, e.g. `/api/v1/pods?limit=500`. */
  path: string;
  body?: object;
  /** Of the body; `application/json` when not given. */
  contentType?: string;
  accept?: string;
}

/** HTTP to one API server over one pool of connections. */
export interface Transport extends AsyncDisposable {
  /** The JSON of a success. Throws ApiError for any other status, `TEMPER_KUBE_UNREACHABLE` or `TEMPER_TIMEOUT` when none came. */
  send(request: KubeRequest, signal: AbortSignal): Promise<Json>;
  /** The body of a success as it arrives, without any time limit. Throws as `send` does until the body begins. */
  open(request: KubeRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

export interface TransportOptions {
  access: ClusterAccess;
  clock: Clock;
  metrics: Metrics;
}

export function createTransport(_options: TransportOptions): Transport {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
