import type { CapabilitySpec } from '../../api/v1alpha1/capability.ts';
import type { Clock } from '../../lib/clock.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import {
  isJsonObject,
  type Json,
  jsonExcess,
  type JsonLimits,
  type JsonObject,
  parseUntrustedJson,
} from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { type BytesRequest, createSafeBytesFetch, type SafeBytesFetch } from '../../net/fetch.ts';
import type { CallingMessage } from '../brokered/port.ts';
import { assertNoEcho, type Credential, credentialOf } from './credentials.ts';
import type { ReachableHosts } from './egress-hosts.ts';
import type { OAuthTokens } from './oauth-tokens.ts';
import type { Connection } from '../../connections/connection.ts';

type HttpBackend = NonNullable<NonNullable<CapabilitySpec['backend']>['http']>;

/** The endpoint of a tool. */
export interface HttpEndpoint {
  readonly name: string;
  readonly backend: HttpBackend;
  readonly url: URL;
  /** Whose credential the requests have. */
  readonly connection: Pick<Connection, 'name'> | undefined;
}

export interface HttpTool extends HttpEndpoint {
  readonly connection: Connection | undefined;
  readonly hosts: ReachableHosts;
}

/** Redirects are refused, because the credential would go with them. */
export const HTTP_TOOL_FETCH = { maxBodyBytes: 1_048_576, redirects: 'refused' } as const;

interface HttpToolDeps {
  readonly clock: Clock;
  readonly tokens: OAuthTokens;
}
const LIMITS: JsonLimits = { values: 100_000, depth: 64 };
const MAX_URL = 8_192;
const MAX_MESSAGE = 500;
const MAX_NAME = 100;

/** Calls the tool for the message of a delivery. Throws what `exchange` throws, the errors of egress and those of the credential. */
export async function callHttpTool(
  tool: HttpTool,
  input: JsonObject,
  delivery: CallingMessage,
  { clock, tokens }: HttpToolDeps,
  op: CallOptions,
): Promise<Json> {
  const { connection, hosts } = tool;
  const send = async () => {
    const credential = await credentialOf(connection, delivery, tokens, op);
    const fetch = createSafeBytesFetch({
      ...HTTP_TOOL_FETCH,
      clock,
      connect: hosts.connect(delivery, credential.authorities),
      sentHeaders: new Set(Object.keys(credential.headers)),
    });
    return { credential, response: await fetch(requestOf(tool, input, credential), hosts.rules, op) };
  };
  let { credential, response } = await send();
  // A token may end before its time; the endpoint has not executed a call that it refused so.
  if (response.status === 401 && credential.discard()) ({ credential, response } = await send());
  return outputOf(tool, response, credential);
}

type EndpointCredential = Pick<Credential, 'headers' | 'isIn'>;
type HttpResponse = Awaited<ReturnType<SafeBytesFetch>>;

/** Sends the arguments to the endpoint and returns its JSON. Throws what `outputOf` and `send` throw. */
export async function exchange(
  endpoint: HttpEndpoint,
  input: JsonObject,
  credential: EndpointCredential,
  send: (request: BytesRequest) => Promise<HttpResponse>,
): Promise<Json> {
  return outputOf(endpoint, await send(requestOf(endpoint, input, credential)), credential);
}

/**
 * The JSON of the answer. Throws TEMPER_TOOL_FAILED for an error of the endpoint, TEMPER_TOOL_OUTPUT_INVALID for an answer that is not JSON within
 * the limits or that contains the credential, and TEMPER_CONNECTION_UNAUTHORIZED when the endpoint refuses the credential.
 */
function outputOf(
  { connection, name }: HttpEndpoint,
  { status, bytes, headers }: HttpResponse,
  credential: EndpointCredential,
): Json {
  const text = bytes.toString('utf8');
  if (status >= 200 && status < 300) return answerIn(name, text, headers['content-type'] ?? '', credential);
  if (connection !== undefined && (status === 401 || status === 403)) {
    const message = `connection "${connection.name}": the server answered ${status}; check the credential and its permissions`;
    throw new TemperError('TEMPER_CONNECTION_UNAUTHORIZED', message);
  }
  const said = credential.isIn(text) ? '[it contains the credential]' : printable(text, MAX_MESSAGE);
  throw new TemperError('TEMPER_TOOL_FAILED', `"${name}" answered HTTP ${status}${said === '' ? '' : `: ${said}`}`);
}

function requestOf(
  { backend, url, name }: HttpEndpoint,
  input: JsonObject,
  { headers }: Pick<Credential, 'headers'>,
): BytesRequest {
  const { method = 'POST' } = backend;
  const common = { accept: 'application/json', ...headers };
  if (method !== 'GET') {
    const sent = { ...common, 'content-type': 'application/json' };
    return { url: url.href, method, headers: sent, body: JSON.stringify(input) };
  }
  const target = new URL(url);
  assertNoneFixed(name, url, input);
  for (const [key, value] of Object.entries(input)) addParameter(target.searchParams, key, value);
  if (target.href.length > MAX_URL)
    throw new TemperError(
      'TEMPER_TOOL_INPUT_INVALID',
      `the arguments of "${name}" make a URL of more than ${MAX_URL} characters`,
    );
  return { url: target.href, method, headers: common };
}

/** Throws for an argument that the endpoint could read in place of a parameter that the manifest fixed in the URL. */
function assertNoneFixed(name: string, url: URL, input: JsonObject): void {
  const fixed = new Map([...url.searchParams.keys()].map((key) => [parameterName(key), key]));
  for (const [argument, value] of Object.entries(input)) {
    const parameter = value === null ? undefined : fixed.get(parameterName(argument));
    if (parameter === undefined) continue;
    throw new TemperError(
      'TEMPER_TOOL_INPUT_INVALID',
      `argument "${printable(argument, MAX_NAME)}" of "${name}" may not repeat the parameter "${printable(parameter, MAX_NAME)}", which the manifest fixes in spec.backend.http.url; call the tool without this argument`,
    );
  }
}

/** Endpoints differ in what they take for one parameter: some ignore the case, and some read `a[]` and `a[x]` as parts of `a`. */
function parameterName(key: string): string {
  return key.replace(/\[.*$/s, '').toLowerCase();
}

/** A list is one parameter for each item; an object is its JSON text; null is left out. */
function addParameter(parameters: URLSearchParams, key: string, value: Json): void {
  if (value === null) return;
  if (Array.isArray(value))
    for (const item of value) addParameter(parameters, key, Array.isArray(item) ? JSON.stringify(item) : item);
  else parameters.append(key, isJsonObject(value) ? JSON.stringify(value) : String(value));
}

function answerIn(name: string, text: string, contentType: string, credential: Pick<Credential, 'isIn'>): Json {
  if (text === '') return null;
  if (!/^application\/(?:[a-z0-9.+-]*\+)?json(?:;|$)/i.test(contentType))
    throw notJson(name, `it is ${printable(contentType, 100)}`);
  const excess = jsonExcess(text, LIMITS);
  if (excess !== undefined) throw notJson(name, `it has more ${excess} than the limit of ${LIMITS[excess]}`);
  const answer = parsed(name, text);
  assertNoEcho(name, answer, credential);
  return answer;
}

function parsed(name: string, text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch {
    throw notJson(name, 'it cannot be parsed');
  }
}

function notJson(name: string, problem: string): TemperError {
  return new TemperError(
    'TEMPER_TOOL_OUTPUT_INVALID',
    `the answer of "${name}" is no JSON that Temper reads: ${problem}`,
  );
}
