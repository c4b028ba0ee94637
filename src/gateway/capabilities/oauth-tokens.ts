import type { OAuthConnection } from '../../connections/connection.ts';
import { SingleFlight } from '../../lib/async/single-flight.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { createSafeBytesFetch } from '../../net/fetch.ts';
import type { CallingMessage } from '../brokered/port.ts';
import { type EgressHostsDeps, reachableHosts } from './egress-hosts.ts';

/** A token, and when it is not used any more. */
interface AccessToken {
  readonly token: string;
  /** Monotonic milliseconds. */
  readonly usedUntil: number;
}

/** What asks for a token. */
export interface TokenRequest {
  readonly connection: OAuthConnection;
  readonly clientSecret: string;
  readonly authorities: readonly string[] | undefined;
  /** Pays for the request, which ends with it. */
  readonly message: CallingMessage;
}

const MAX_RESPONSE_BYTES = 65_536;
/** Of a server that does not say how long its tokens are valid. */
const DEFAULT_SECONDS = 300;
const MAX_SECONDS = 86_400;
/** A token that is about to expire may do so on its way. */
const MARGIN_SECONDS = 30;
const TOKEN = /^[!-~]{8,8192}$/;
/** The codes of RFC 6749, 5.2. A description could repeat the secret. */
const ERROR_CODE = /^[a-z_]{1,40}$/;

/**
 * Access tokens of connections, by the client credentials grant of OAuth 2.1. The request passes the egress proxy to the host of the token
 * endpoint alone, for the message that needs the token. A token is shared by all calls with its connection.
 */
export class OAuthTokens {
  readonly #deps: EgressHostsDeps & { clock: Clock };
  readonly #tokens = new Map<string, AccessToken>();
  readonly #asking = new SingleFlight<string>();

  constructor(deps: EgressHostsDeps & { clock: Clock }) {
    this.#deps = deps;
  }

  /**
   * The token of the connection, and whether it was used before. Throws TEMPER_CONNECTION_UNAUTHORIZED when the endpoint refuses the client,
   * TEMPER_CONNECTION_FAILED, and the errors of egress.
   */
  async token(request: TokenRequest, op: CallOptions): Promise<{ token: string; isUsed: boolean }> {
    const { name } = request.connection;
    const known = this.#tokens.get(name);
    if (known !== undefined && this.#deps.clock.monotonic() < known.usedUntil)
      return { token: known.token, isUsed: true };
    // The call of one agent does not end with that of another one.
    const key = JSON.stringify([name, request.message.claims.agentUid]);
    const token = await this.#asking.run(key, async () => {
      const fresh = await this.#ask(request, op);
      this.#tokens.set(name, fresh);
      return fresh.token;
    });
    return { token, isUsed: false };
  }

  /** The server refused this token. */
  discard({ name }: OAuthConnection, token: string): void {
    if (this.#tokens.get(name)?.token === token) this.#tokens.delete(name);
  }

  async #ask({ connection, clientSecret, authorities, message }: TokenRequest, op: CallOptions): Promise<AccessToken> {
    const { clock } = this.#deps;
    const url = new URL(connection.oauth.tokenUrl);
    const hosts = reachableHosts(url, { ...connection, hosts: [hostOf(url)] }, this.#deps);
    const fetch = createSafeBytesFetch({
      clock,
      connect: hosts.connect(message, authorities),
      maxBodyBytes: MAX_RESPONSE_BYTES,
      redirects: 'refused',
    });
    const { headers, body } = formOf(connection, clientSecret);
    const request = { url: url.href, method: 'POST', headers, body };
    const { status, bytes } = await fetch(request, hosts.rules, op).catch((error: unknown) => {
      if (!isTemperError(error, 'TEMPER_FETCH_FAILED')) throw error;
      throw failed(connection, `does not answer: ${error.message}`);
    });
    const answer = jsonOf(bytes.toString('utf8'));
    if (status !== 200) throw refused(connection, status, textAt(answer, ['error']));
    return this.#read(connection, answer);
  }

  #read(connection: OAuthConnection, answer: Json): AccessToken {
    const token = textAt(answer, ['access_token']);
    if (!TOKEN.test(token) || textAt(answer, ['token_type']).toLowerCase() !== 'bearer')
      throw failed(connection, 'gave no bearer token of 8 to 8192 characters');
    const given = member(answer, 'expires_in');
    const seconds = typeof given === 'number' && given > 0 ? Math.min(given, MAX_SECONDS) : DEFAULT_SECONDS;
    const used = Math.max(seconds - MARGIN_SECONDS, seconds / 2);
    return { token, usedUntil: this.#deps.clock.monotonic() + used * 1_000 };
  }
}

function formOf({ oauth }: OAuthConnection, clientSecret: string): { headers: Record<string, string>; body: string } {
  const { clientId, scopes = [], resource, authentication = 'Basic' } = oauth;
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scopes.length > 0) form.set('scope', scopes.join(' '));
  if (resource !== undefined) form.set('resource', resource);
  const headers = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' };
  if (authentication === 'Basic') {
    // RFC 6749, 2.3.1: both are encoded as in a form first.
    const pair = [clientId, clientSecret]
      .map((text) => new URLSearchParams([['', text]]).toString().slice(1))
      .join(':');
    const authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
    return { headers: { ...headers, authorization }, body: form.toString() };
  }
  form.set('client_id', clientId);
  form.set('client_secret', clientSecret);
  return { headers, body: form.toString() };
}

function hostOf({ hostname, port }: URL): string {
  return `${hostname}:${port === '' ? '443' : port}`;
}

function jsonOf(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch {
    return null;
  }
}

function refused(connection: OAuthConnection, status: number, error: string): TemperError {
  const code = ERROR_CODE.test(error) ? `${status} (${error})` : String(status);
  if (status !== 400 && status !== 401) return failed(connection, `answered ${code}`);
  const message = `connection "${connection.name}": the token endpoint answered ${code}; check oauth and the client secret`;
  return new TemperError('TEMPER_CONNECTION_UNAUTHORIZED', message);
}

function failed({ name }: OAuthConnection, problem: string): TemperError {
  const message = `connection "${name}": the token endpoint ${problem}`;
  return new TemperError('TEMPER_CONNECTION_FAILED', message, { retry: 'backoff' });
}
