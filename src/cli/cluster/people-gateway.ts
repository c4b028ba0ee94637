import { AUDIENCES, NAMESPACE_OBJECTS, PORTS, RELEASE_OBJECTS } from '../../api/cluster.ts';
import { ApiError, type ResourceType } from '../../kube/client.ts';
import { systemClock } from '../../lib/clock.ts';
import { ERROR_CODES, type ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/escape.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { PEOPLE_PATH, TOKEN_HEADER } from '../../remote/people.ts';
import { currentTraceparent, TRACEPARENT } from '../../telemetry/traceparent.ts';
import { type ApiCall, type ApiReply, callApi, streamApi } from './api-call.ts';
import { type Cluster, explained } from './cluster.ts';

const SERVICES: ResourceType = { group: '', version: 'v1', plural: 'services', kind: 'Service', namespaced: true };
const GATEWAY_LABELS = 'app.kubernetes.io/name=temper,app.kubernetes.io/component=gateway';
const USUAL_NAMESPACE = 'temper-system';
const TOKEN_SECONDS = 600;
/** A new token when less than this is left. */
const TOKEN_REST_MILLISECONDS = 60_000;
/** The gateway writes an empty line every quarter of a minute. */
const IDLE_MILLISECONDS = 60_000;

export interface GatewayCall {
  readonly method: ApiCall['method'];
  /** Below the namespace of people, with its query. */
  readonly path: string;
  readonly body?: object;
  /** Makes a second call the same as the first. */
  readonly idempotencyKey?: string;
}

/** The gateway as people reach it: through the API server, with a token of `temper-people` of the namespace. */
export class PeopleGateway {
  readonly #cluster: Cluster;
  readonly #signal: AbortSignal;
  #token: { text: string; until: number } | undefined;
  #release: string | undefined;

  constructor(cluster: Cluster, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#signal = signal;
  }

  /** The JSON of a success; null where there is none. Throws what the gateway refused, with its code. */
  async call(call: GatewayCall): Promise<Json> {
    const reply = await callApi(this.#cluster.access, await this.#proxied(call), this.#signal);
    if (reply.status < 200 || reply.status >= 300) throw this.#refusal(reply);
    return reply.text === '' ? null : this.#json(reply.text);
  }

  /** Lines as they come, until the gateway ends them or the connection breaks. */
  async lines(path: string): Promise<AsyncGenerator<string>> {
    const call = await this.#proxied({ method: 'GET', path });
    const answer = await streamApi(this.#cluster.access, call, this.#signal, IDLE_MILLISECONDS);
    if ('refusal' in answer) throw this.#refusal(answer.refusal);
    return answer.lines;
  }

  async #proxied({ method, path, body, idempotencyKey }: GatewayCall): Promise<ApiCall> {
    const { namespace } = this.#cluster;
    this.#release ??= await this.#releaseNamespace();
    const traceparent = currentTraceparent();
    const service = `https:${RELEASE_OBJECTS.gateway}:${PORTS.gateway}`;
    const root = `/api/v1/namespaces/${encodeURIComponent(this.#release)}/services/${service}/proxy`;
    return {
      method,
      path: `${root}${PEOPLE_PATH}/${encodeURIComponent(namespace)}/${path}`,
      ...(body === undefined ? {} : { body }),
      headers: {
        [TOKEN_HEADER]: await this.#peopleToken(),
        ...(traceparent === undefined ? {} : { [TRACEPARENT]: traceparent }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
    };
  }

  /** Who may not look for the gateway gets the usual place. */
  async #releaseNamespace(): Promise<string> {
    const { temperNamespace, kube } = this.#cluster;
    if (temperNamespace !== undefined) return temperNamespace;
    try {
      const found = await kube.list(SERVICES, { labelSelector: GATEWAY_LABELS }, this.#signal);
      const gateways = found.filter(({ metadata }) => metadata.name === RELEASE_OBJECTS.gateway);
      const namespaces = gateways.map(({ metadata }) => metadata.namespace ?? '');
      if (namespaces.length > 1) {
        const list = namespaces.map((name) => printable(name, 63)).join(', ');
        throw new TemperError('TEMPER_USAGE', `Temper is installed in ${list}; say which with --temper-namespace`);
      }
      return namespaces[0] ?? USUAL_NAMESPACE;
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return USUAL_NAMESPACE;
      throw error;
    }
  }

  async #peopleToken(): Promise<string> {
    const { kube, namespace, place } = this.#cluster;
    if (this.#token !== undefined && this.#token.until - systemClock.now().getTime() > TOKEN_REST_MILLISECONDS)
      return this.#token.text;
    const name = NAMESPACE_OBJECTS.peopleServiceAccount;
    try {
      const request = { audiences: [AUDIENCES.gateway], expirationSeconds: TOKEN_SECONDS };
      const { token, expirationTimestamp } = await kube.createToken({ namespace, name }, request, this.#signal);
      this.#token = { text: token, until: Date.parse(expirationTimestamp) };
      return token;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const options = { cause: error };
      if (error.status === 404) {
        const why = `namespace ${place} has no ServiceAccount ${name}: the operator makes it with the first agent or TrustPolicy there`;
        throw new TemperError('TEMPER_NOT_FOUND', why, options);
      }
      if (error.status !== 403) throw explained(error, 'asking for a token', this.#cluster);
      const message =
        `you may not speak to the agents of ${place}: that takes create on serviceaccounts/token of ${name}; an administrator gives it with ` +
        `kubectl create rolebinding temper-users -n ${namespace} --clusterrole=temper-user --user=NAME (${printable(error.message, 300)})`;
      throw new TemperError('TEMPER_CLUSTER_FORBIDDEN', message, options);
    }
  }

  /** The gateway's own refusals have a code; those of the API server before it do not. */
  #refusal({ status, text }: ApiReply): TemperError {
    const body = jsonOrText(text);
    const error = member(body, 'error');
    const code = textAt(error, ['code']);
    if (isErrorCode(code)) return new TemperError(code, printable(textAt(error, ['message']), 2_000));
    const said = printable(typeof body === 'string' ? body : textAt(body, ['message']), 500);
    const where = `the gateway in namespace ${printable(this.#release ?? '', 63)}`;
    if (status === 403) {
      const message = `you may not reach ${where}: that takes services/proxy on https:${RELEASE_OBJECTS.gateway}:${PORTS.gateway} there, which the chart gives to people.subjects (${said})`;
      return new TemperError('TEMPER_CLUSTER_FORBIDDEN', message);
    }
    if (status === 404) {
      const message = `${where} does not exist; is Temper installed somewhere else? --temper-namespace says where (${said})`;
      return new TemperError('TEMPER_GATEWAY_UNREACHABLE', message);
    }
    const message = `${where} answered ${status} through the API server; \`temper check\` says whether it is ready (${said})`;
    return new TemperError('TEMPER_GATEWAY_UNREACHABLE', message, { retry: 'backoff' });
  }

  #json(text: string): Json {
    try {
      return parseUntrustedJson(text);
    } catch (error) {
      throw new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'what answers at the gateway does not speak JSON', {
        cause: error,
      });
    }
  }
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

function jsonOrText(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch {
    return text;
  }
}
