import type { CallOptions } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Network } from '../net/dialer.ts';
import { type BytesRequest, createSafeBytesFetch, type SafeBytesFetch, type SafeFetchOptions } from '../net/fetch.ts';
import { readSecretFile } from '../net/secret-file.ts';
import type { TargetRules } from '../net/targets.ts';
import { authoritiesOf } from './authorities.ts';
import type { ReachedConnection } from './connection.ts';

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly network?: Network;
  /** A fetch with these limits, which another one pays for and checks. Absent: one over `network`. */
  readonly fetchWith?: (limits: FetchLimits) => SafeBytesFetch;
  /** Absent: the content of `credentialFile`. */
  readonly credential?: () => string;
}

type FetchLimits = Pick<SafeFetchOptions, 'maxBodyBytes' | 'sentHeaders' | 'certificateAuthorities'>;

interface TransportResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
  /** What a refusal says, without the credential. */
  readonly message: () => string;
}

/** What differs between the protocols that a connection carries. */
export interface Protocol {
  /** The value of the header `authorization`. */
  authorizationOf(credential: string): string;
  /** What the body of a refusal says. */
  messageIn(bytes: Buffer): string;
  /** Lower-case names of request headers that only this protocol has. */
  readonly sentHeaders?: ReadonlySet<string>;
}

/**
 * Sends requests with the credential of one connection, to its hosts only. Returns a response of any status but 401, 403, 429 and 5xx.
 * Throws TEMPER_CONNECTION_UNAUTHORIZED, and TEMPER_CONNECTION_FAILED, which may be retried. No error contains the credential.
 */
export type ConnectionTransport = (request: BytesRequest, op: CallOptions) => Promise<TransportResponse>;

/** Files of a promotion are larger than what a tool may fetch. */
const MAX_BODY_BYTES = 16 * 1_024 * 1_024;
const MAX_MESSAGE = 300;
/** A server that asks for more is asked again after an hour. */
const MAX_RETRY_AFTER_SECONDS = 3_600;

export function createConnectionTransport(
  connection: ReachedConnection,
  protocol: Protocol,
  options: ConnectionOptions,
): ConnectionTransport {
  const rules = rulesOf(connection);
  const { sentHeaders } = protocol;
  return async ({ headers, ...request }, op) => {
    const credential = options.credential?.() ?? (await credentialOf(connection));
    const certificateAuthorities = await authoritiesOf(connection);
    const authorization = protocol.authorizationOf(credential);
    const hidden = (text: string): string => withoutCredential(text, credential, authorization);
    const fetch = fetchOf(options, {
      maxBodyBytes: MAX_BODY_BYTES,
      ...(sentHeaders === undefined ? {} : { sentHeaders }),
      ...(certificateAuthorities === undefined ? {} : { certificateAuthorities }),
    });
    const response = await fetch({ ...request, headers: { ...headers, authorization } }, rules, op).catch(
      (error: unknown) => {
        if (isTemperError(error) && !FETCH_ERRORS.includes(error.code)) throw error;
        throw connectionFailure(connection, withNextStep(hidden(messageOf(error))));
      },
    );
    const answer = { ...response, message: () => hidden(protocol.messageIn(response.bytes)) };
    assertUsable(connection, answer);
    return answer;
  };
}

/** Of the server and the way to it. Others, such as those of a quota, are for the caller. */
const FETCH_ERRORS: readonly ErrorCode[] = ['TEMPER_FETCH_FAILED', 'TEMPER_FETCH_DENIED'];

function fetchOf({ clock, network, fetchWith }: ConnectionOptions, limits: FetchLimits): SafeBytesFetch {
  if (fetchWith !== undefined) return fetchWith(limits);
  return createSafeBytesFetch({ ...limits, clock, ...(network === undefined ? {} : { network }) });
}

/** `details.retryAfterSeconds` is the time that the server asks to wait. */
export function connectionFailure(
  { name }: Pick<ReachedConnection, 'name'>,
  problem: string,
  details = {},
): TemperError {
  return new TemperError('TEMPER_CONNECTION_FAILED', `connection "${name}": ${problem}`, { retry: 'backoff', details });
}

/** The codes of Node for certificates that no trusted authority signed, or that are for another name. */
function withNextStep(problem: string): string {
  return /CERT|SIGNATURE|ISSUER/.test(problem) ? `${problem}; check caFile and the certificate of the server` : problem;
}

function rulesOf({ hosts, private: isPrivate }: ReachedConnection): TargetRules {
  const names = hosts.map((host) => host.slice(0, host.lastIndexOf(':')));
  return {
    ports: hosts.map((host) => Number(host.slice(host.lastIndexOf(':') + 1))),
    hostDenialReason: (host, port) =>
      hosts.includes(`${host}:${port}`) ? undefined : 'it is not a host of the connection',
    ...(isPrivate === true ? { privateHosts: new Set(names) } : {}),
  };
}

async function credentialOf({ name, credentialFile = '' }: ReachedConnection): Promise<string> {
  const found = await readSecretFile(credentialFile);
  if ('secret' in found) return found.secret;
  throw new TemperError(
    'TEMPER_CONNECTION_UNAUTHORIZED',
    `connection "${name}" has no credential: ${credentialFile} ${found.problem}`,
  );
}

function assertUsable(connection: ReachedConnection, { status, headers, message }: TransportResponse): void {
  const said = (): string => {
    const text = message();
    return `answered ${status}${text === '' ? '' : `: ${text}`}`;
  };
  if (status === 401 || status === 403) {
    throw new TemperError(
      'TEMPER_CONNECTION_UNAUTHORIZED',
      `connection "${connection.name}": the server ${said()}; check the token and its permissions`,
    );
  }
  if (status !== 429 && status < 500) return;
  const seconds = retryAfterSeconds(headers['retry-after']);
  if (seconds === undefined) throw connectionFailure(connection, `the server ${said()}`);
  const problem = `the server ${said()}; the server asks to wait ${seconds} s`;
  throw connectionFailure(connection, problem, { retryAfterSeconds: seconds });
}

/** Undefined for a date, which no server of pull requests sends, and for anything else but seconds. */
function retryAfterSeconds(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,9}$/.test(header)) return undefined;
  return Math.min(Math.max(1, Number(header)), MAX_RETRY_AFTER_SECONDS);
}

/** A server may repeat what it received, in the form in which it received it. */
function withoutCredential(text: string, credential: string, authorization: string): string {
  const encoded = authorization.slice(authorization.indexOf(' ') + 1);
  const hidden = text.replaceAll(credential, '[credential]').replaceAll(encoded, '[credential]');
  return printable(hidden, MAX_MESSAGE);
}
