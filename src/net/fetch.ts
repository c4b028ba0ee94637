/** An HTTP request on behalf of untrusted code: every redirect target is validated, every address pinned, every size and time limited. */
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { Agent } from 'undici';
import { readBytes } from '../lib/async/read-body.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { type CallOptions, withTimeout } from '../lib/call-options.ts';
import { dial, createSystemNetwork, type Network, validateAddresses } from './dialer.ts';
import { headersToReturn, headersToSend, withoutCredentials } from './headers.ts';
import { type Target, type TargetRules, validateTarget } from './targets.ts';

export interface FetchRequest {
  url: string;
  /** GET when absent. */
  method?: string;
  headers?: Readonly<Record<string, string>>;
  /** Text, at most 1 MiB. */
  body?: string;
}

/** A request with any bytes. */
export type BytesRequest = Omit<FetchRequest, 'body'> & {
  body?: string | Uint8Array;
  /** Limit of the decompressed response body, in place of `maxBodyBytes`. */
  maxResponseBytes?: number;
};

interface BytesResponse {
  status: number;
  /** Lower-case names; only allowlisted headers. */
  headers: Record<string, string>;
  bytes: Buffer;
  /** The URL of the response, after redirects. */
  url: string;
  redirected: boolean;
}

type FetchResponse = Omit<BytesResponse, 'bytes'> & {
  /** Text; invalid UTF-8 is replaced. */
  body: string;
};

/** Throws TEMPER_FETCH_DENIED for a request that is not allowed, TEMPER_FETCH_FAILED for a request that failed. */
export type SafeFetch = (request: FetchRequest, rules: TargetRules, op: CallOptions) => Promise<FetchResponse>;

/** As `SafeFetch`, for bodies that are not text. */
export type SafeBytesFetch = (request: BytesRequest, rules: TargetRules, op: CallOptions) => Promise<BytesResponse>;

export interface SafeFetchOptions {
  clock: Clock;
  /** Resolves names and opens connections. Addresses that it resolves are still validated: only public ones are connected to. */
  network?: Network;
  /** Opens every connection, in place of `network`: such as through a proxy, which resolves names and validates addresses itself. */
  connect?: (target: Target, signal: AbortSignal) => Promise<Socket>;
  /** Certificates to trust instead of the system's, PEM. */
  certificateAuthorities?: readonly string[];
  /** Limit of a request body and of a decompressed response body. Default 1 MiB. */
  maxBodyBytes?: number;
  /** Lower-case names of response headers to return in addition to the allowlisted ones. Never for responses that untrusted code reads. */
  returnedHeaders?: ReadonlySet<string>;
  /** Lower-case names of request headers to permit in addition to the allowlisted ones. Never for requests that untrusted code writes. */
  sentHeaders?: ReadonlySet<string>;
  /** Absent: redirects are followed, each with all checks. */
  redirects?: 'refused';
  /** `Call`: a response may take what the call has left, such as that of an agent. Absent: 30 seconds in all, and 10 without a byte. */
  timeLimit?: 'Call';
  /** Called for every request that is sent, redirects included. */
  onRequest?: (hop: { method: string; host: string; port: number }) => void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const HEADERS_TIMEOUT_MS = 10_000;
const TOTAL_TIMEOUT_MS = 30_000;
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0 };
const MAX_REDIRECTS = 5;
const MAX_BYTES = 1_048_576;
const NO_HEADERS: ReadonlySet<string> = new Set();
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

type FetchOptions = SafeFetchOptions & { network: Network; maxBodyBytes: number };

/** The request of one hop: the first request, or one redirect. */
interface HopRequest {
  method: string;
  headers: Record<string, string>;
  body: string | Uint8Array | undefined;
  maxResponseBytes: number;
}

export function createSafeFetch(given: SafeFetchOptions): SafeFetch {
  return textFetch(createSafeBytesFetch(given));
}

/** The same fetch for bodies of text. */
export function textFetch(fetchBytes: SafeBytesFetch): SafeFetch {
  return async (request, rules, op) => {
    const { bytes, ...response } = await fetchBytes(request, rules, op);
    return { ...response, body: bytes.toString('utf8') };
  };
}

export function createSafeBytesFetch(given: SafeFetchOptions): SafeBytesFetch {
  const options = { network: createSystemNetwork(), maxBodyBytes: MAX_BYTES, ...given };
  return (request, rules, op) =>
    withTimeout(op, options.clock, options.timeLimit === 'Call' ? Infinity : TOTAL_TIMEOUT_MS, async (bounded) => {
      try {
        return await follow(request, rules, bounded, options);
      } catch (error) {
        if (isTemperError(error)) throw error;
        const reason = bounded.signal.aborted ? 'no complete response in time' : reasonOf(error);
        throw new TemperError('TEMPER_FETCH_FAILED', `the request failed: ${reason}`, {
          cause: error,
          retry: 'backoff',
        });
      }
    });
}

async function follow(
  request: BytesRequest,
  rules: TargetRules,
  op: CallOptions,
  options: FetchOptions,
): Promise<BytesResponse> {
  let hop = firstHop(request, options);
  let target = validateTarget(request.url, rules);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const { response, location } = await requestHop(target, hop, op, options);
    if (typeof location !== 'string') return { ...response, redirected: redirects > 0 };
    if (options.redirects === 'refused')
      throw new TemperError('TEMPER_FETCH_DENIED', `${target.host} redirects, which is refused`);
    const next = redirectTarget(target, absolute(location, target), rules);
    if (target.isHttps && !next.isHttps) {
      throw new TemperError('TEMPER_FETCH_DENIED', `${target.host} redirects from https to http`);
    }
    hop = nextHop(hop, response.status, next.url.origin !== target.url.origin);
    target = next;
  }
  throw new TemperError('TEMPER_FETCH_FAILED', `more than ${MAX_REDIRECTS} redirects`);
}

/** The error of a target that is not allowed says that it comes from a redirect: the caller did not choose it. */
function redirectTarget(from: Target, location: string, rules: TargetRules): Target {
  try {
    return validateTarget(location, rules);
  } catch (error) {
    if (!isTemperError(error)) throw error;
    throw new TemperError(error.code, `${from.host} redirects: ${error.message}`, { cause: error });
  }
}

function firstHop(request: BytesRequest, { maxBodyBytes, sentHeaders = NO_HEADERS }: FetchOptions): HopRequest {
  const method = (request.method ?? 'GET').toUpperCase();
  if (!METHODS.has(method)) {
    throw new TemperError('TEMPER_FETCH_DENIED', `the method is not one of ${[...METHODS].join(', ')}`);
  }
  const body = method === 'GET' || method === 'HEAD' ? undefined : request.body;
  if (body !== undefined && Buffer.byteLength(body) > maxBodyBytes) {
    throw new TemperError('TEMPER_FETCH_DENIED', `the body is larger than ${maxBodyBytes} bytes`);
  }
  const headers = headersToSend(request.headers ?? {}, sentHeaders);
  return { method, headers, body, maxResponseBytes: request.maxResponseBytes ?? maxBodyBytes };
}

/** After a 303, and after a 301 or 302 of a POST, the next request is a GET. A redirect to another origin drops the credentials. */
function nextHop(hop: HopRequest, status: number, otherOrigin: boolean): HopRequest {
  const headers = otherOrigin ? withoutCredentials(hop.headers) : hop.headers;
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : status < 303 && hop.method === 'POST';
  return becomesGet ? { ...hop, method: 'GET', headers, body: undefined } : { ...hop, headers };
}

function absolute(location: string, target: Target): string {
  return URL.canParse(location) ? location : (URL.parse(location, target.url)?.href ?? location);
}

interface HopResponse {
  response: BytesResponse;
  /** The target of a redirect. */
  location?: string;
}

async function requestHop(
  target: Target,
  hop: HopRequest,
  op: CallOptions,
  options: FetchOptions,
): Promise<HopResponse> {
  const socket = await connectionOf(target, hop, op.signal, options);
  const agent = new Agent({
    // Only the validated connection is ever used. undici ignores a callback in the same tick, hence the microtask.
    connect: (_ignored, callback) => {
      queueMicrotask(() => {
        if (socket.destroyed) callback(new Error('the connection is closed'), null);
        else callback(null, socket);
      });
    },
    ...(options.timeLimit === 'Call'
      ? NO_TIMEOUTS
      : { headersTimeout: HEADERS_TIMEOUT_MS, bodyTimeout: HEADERS_TIMEOUT_MS }),
    pipelining: 1,
  });
  try {
    const { origin, pathname, search } = target.url;
    const received = await agent.request({
      origin,
      path: `${pathname}${search}`,
      method: hop.method as 'GET',
      headers: hop.headers,
      body: hop.body ?? null,
      signal: op.signal,
    });
    const { location } = received.headers;
    const redirects = [301, 302, 303, 307, 308].includes(received.statusCode) && typeof location === 'string';
    const bytes = redirects ? Buffer.alloc(0) : await bytesOf(received.body, received.headers['content-encoding'], hop);
    const response: BytesResponse = {
      status: received.statusCode,
      headers: headersToReturn(received.headers, options.returnedHeaders ?? NO_HEADERS),
      bytes,
      url: target.url.href,
      redirected: false,
    };
    return redirects ? { response, location } : { response };
  } finally {
    await agent.destroy();
    socket.destroy();
  }
}

async function connectionOf(
  target: Target,
  { method }: HopRequest,
  signal: AbortSignal,
  { network, connect, certificateAuthorities, onRequest }: FetchOptions,
): Promise<Socket> {
  const addresses = connect === undefined ? await validateAddresses(target, network, signal) : [];
  onRequest?.({ method, host: target.host, port: target.port });
  if (connect !== undefined) return connect(target, signal);
  const connecting = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
  return dial(target, addresses, network, connecting, certificateAuthorities);
}

/** The decompressed body. The limit applies to the decompressed size, against decompression bombs. */
function bytesOf(
  body: Readable,
  encoding: string | string[] | undefined,
  { maxResponseBytes }: HopRequest,
): Promise<Buffer> {
  return readBytes(decoded(body, encoding), maxResponseBytes, () => {
    body.destroy();
    return new TemperError('TEMPER_FETCH_FAILED', `the response is larger than ${maxResponseBytes} bytes`);
  });
}

function decoded(body: Readable, encoding: string | string[] | undefined): Readable {
  const decoder = decoderFor(String(encoding ?? 'identity').toLowerCase());
  if (decoder === undefined) return body;
  body.once('error', (error: Error) => decoder.destroy(error));
  return body.pipe(decoder);
}

function decoderFor(encoding: string) {
  switch (encoding) {
    case 'identity':
      return undefined;
    case 'gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      // RFC 9659 limits the window of this content encoding to 8 MiB.
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } });
    default:
      throw new TemperError(
        'TEMPER_FETCH_FAILED',
        'the response has a content-encoding that the request did not accept',
      );
  }
}

/** A fixed text or an error code; text from the network stays in the cause. */
export function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'no connection in time';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^[A-Z][A-Z0-9_]{2,40}$/.test(code) ? code : 'the connection broke or the response is not HTTP';
}
