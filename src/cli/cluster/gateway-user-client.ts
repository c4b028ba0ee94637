import { resourceType } from '../../kube/client/resource-path.ts';
import { AUDIENCES, NAMESPACE_OBJECTS, PORTS, RELEASE_OBJECTS } from '../../api/cluster.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { systemClock } from '../../lib/clock.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { errorFromResponse } from '../../gateway-client/response-errors.ts';
import { USERS_PATH, USER_TOKEN_HEADER } from '../../gateway-api/user-api.ts';
import { currentTraceparent, TRACEPARENT } from '../../telemetry/traceparent.ts';
import { type RawRequest, type RawResponse, sendRawRequest, streamRawRequest } from './raw-request.ts';
import { type Cluster, toTemperError } from './cluster.ts';

const SERVICES = resourceType('v1', 'services', 'Service');
const GATEWAY_LABELS = 'app.kubernetes.io/name=temper,app.kubernetes.io/component=gateway';
const DEFAULT_NAMESPACE = 'temper-system';
const TOKEN_SECONDS = 600;
/** The token is renewed when its remaining lifetime is shorter. */
const TOKEN_RENEWAL_MS = 60_000;
/** A stream without data for this long is broken: the gateway writes an empty line every 15 s. */
const IDLE_TIMEOUT_MS = 60_000;

export interface UserApiRequest {
  readonly method: RawRequest['method'];
  /** Path below `/v1/users/namespaces/{namespace}/`, with query. */
  readonly path: string;
  readonly body?: object;
  /** The gateway handles calls with the same key once. */
  readonly idempotencyKey?: string;
}

/** Client of the gateway's user API: through the API server's service proxy, with a token of the ServiceAccount `temper-users`. */
export class GatewayUserClient {
  readonly #cluster: Cluster;
  readonly #signal: AbortSignal;
  #token: { text: string; until: number } | undefined;
  #release: string | undefined;

  constructor(cluster: Cluster, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#signal = signal;
  }

  /** Sends a request and returns the JSON of a successful response; null without a body. Throws the gateway's error with its code. */
  async call(call: UserApiRequest): Promise<Json> {
    const reply = await sendRawRequest(this.#cluster.access, await this.#proxied(call), this.#signal);
    if (reply.status < 200 || reply.status >= 300) throw this.#errorFrom(reply);
    return reply.text === '' ? null : this.#json(reply.text);
  }

  /** Streams lines until the gateway ends the response or the connection breaks. */
  async lines(path: string): Promise<AsyncGenerator<string>> {
    const call = await this.#proxied({ method: 'GET', path });
    const response = await streamRawRequest(this.#cluster.access, call, this.#signal, IDLE_TIMEOUT_MS);
    if ('errorResponse' in response) throw this.#errorFrom(response.errorResponse);
    return response.lines;
  }

  /** The namespace of the gateway. */
  async releaseNamespace(): Promise<string> {
    this.#release ??= await this.#findRelease();
    return this.#release;
  }

  async #proxied({ method, path, body, idempotencyKey }: UserApiRequest): Promise<RawRequest> {
    const { namespace } = this.#cluster;
    const release = await this.releaseNamespace();
    const traceparent = currentTraceparent();
    const service = `https:${RELEASE_OBJECTS.gateway}:${PORTS.gateway}`;
    const root = `/api/v1/namespaces/${encodeURIComponent(release)}/services/${service}/proxy`;
    return {
      method,
      path: `${root}${USERS_PATH}/${encodeURIComponent(namespace)}/${path}`,
      ...(body === undefined ? {} : { body }),
      headers: {
        [USER_TOKEN_HEADER]: await this.#userToken(),
        ...(traceparent === undefined ? {} : { [TRACEPARENT]: traceparent }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
    };
  }

  /** The namespace of the gateway. Falls back to the default namespace when the user may not list Services. */
  async #findRelease(): Promise<string> {
    const { temperNamespace, kube } = this.#cluster;
    if (temperNamespace !== undefined) return temperNamespace;
    try {
      const found = await kube.list(SERVICES, { labelSelector: GATEWAY_LABELS }, this.#signal);
      const gateways = found.filter(({ metadata }) => metadata.name === RELEASE_OBJECTS.gateway);
      const namespaces = gateways.map(({ metadata }) => metadata.namespace ?? '');
      if (namespaces.length > 1) {
        const list = namespaces.map((name) => printable(name, 63)).join(', ');
        throw new TemperError('TEMPER_USAGE', `Temper is installed in ${list}; choose one with --temper-namespace`);
      }
      return namespaces[0] ?? DEFAULT_NAMESPACE;
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return DEFAULT_NAMESPACE;
      throw error;
    }
  }

  async #userToken(): Promise<string> {
    const { kube, namespace, location } = this.#cluster;
    if (this.#token !== undefined && this.#token.until - systemClock.now().getTime() > TOKEN_RENEWAL_MS)
      return this.#token.text;
    const name = NAMESPACE_OBJECTS.usersServiceAccount;
    try {
      const request = { audiences: [AUDIENCES.gateway], expirationSeconds: TOKEN_SECONDS };
      const { token, expirationTimestamp } = await kube.createToken({ namespace, name }, request, this.#signal);
      this.#token = { text: token, until: Date.parse(expirationTimestamp) };
      return token;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const options = { cause: error };
      if (error.status === 404) {
        const why = `namespace ${location} has no ServiceAccount ${name}: the operator creates it with the first Agent or TrustPolicy there`;
        throw new TemperError('TEMPER_NOT_FOUND', why, options);
      }
      if (error.status !== 403) throw toTemperError(error, 'requesting a token', this.#cluster);
      const message =
        `you may not send messages to the agents of ${location}: this needs create on serviceaccounts/token of ${name}; an administrator grants it with ` +
        `kubectl create rolebinding temper-users -n ${namespace} --clusterrole=temper-user --user=NAME (${printable(error.message, 300)})`;
      throw new TemperError('TEMPER_CLUSTER_FORBIDDEN', message, options);
    }
  }

  /** Converts an error response. Errors of the gateway have a Temper code; errors of the API server do not. */
  #errorFrom({ status, text }: RawResponse): TemperError {
    const body = jsonOrText(text);
    const error = member(body, 'error');
    const code = textAt(error, ['code']);
    if (isErrorCode(code)) return errorFromResponse(status, body, undefined);
    const detail = printable(typeof body === 'string' ? body : textAt(body, ['message']), 500);
    const where = `the gateway in namespace ${printable(this.#release ?? '', 63)}`;
    if (status === 403) {
      const message = `you may not reach ${where}: this needs services/proxy on https:${RELEASE_OBJECTS.gateway}:${PORTS.gateway} there, which the chart grants to users.subjects (${detail})`;
      return new TemperError('TEMPER_CLUSTER_FORBIDDEN', message);
    }
    if (status === 404) {
      const message = `${where} does not exist; is Temper installed in another namespace? Set --temper-namespace (${detail})`;
      return new TemperError('TEMPER_GATEWAY_UNREACHABLE', message);
    }
    const message = `${where} responded with status ${status} through the API server; check its readiness with \`temper check\` (${detail})`;
    return new TemperError('TEMPER_GATEWAY_UNREACHABLE', message, { retry: 'backoff' });
  }

  #json(text: string): Json {
    try {
      return parseUntrustedJson(text);
    } catch (error) {
      throw new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'the response of the gateway is not JSON', {
        cause: error,
      });
    }
  }
}

function jsonOrText(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch {
    return text;
  }
}
