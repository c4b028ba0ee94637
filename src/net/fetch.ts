/** One HTTP request for a stranger's code: every hop vetted, every address pinned, every size and time bounded. */
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Agent, request as send } from 'undici';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { type Op, withTimeout } from '../lib/operation.ts';
import { dial, type Network, systemNetwork, vetAddresses } from './dialer.ts';
import { headersToReturn, headersToSend, withoutCredentials } from './headers.ts';
import { type Target, type TargetRules, vetTarget } from './targets.ts';

export interface FetchRequest {
  url: string;
  /** GET when absent. */
  method?: string;
  headers?: Readonly<Record<string, string>>;
  /** Text, at most 1 MiB. */
  body?: string;
}

interface FetchAnswer {
  status: number;
  /** Lower-case names; only those on the list. */
  headers: Record<string, string>;
  /** Text; bytes that are no UTF-8 are replaced. */
  body: string;
  /** Where the answer came from, after redirects. */
  url: string;
  redirected: boolean;
}

/** Throws TEMPER_FETCH_DENIED for what is not allowed, TEMPER_FETCH_FAILED for what did not work. */
export type SafeFetch = (request: FetchRequest, rules: TargetRules, op: Op) => Promise<FetchAnswer>;

export interface SafeFetchOptions {
  clock: Clock;
  /** How names are resolved and connections made. Whatever it says, only public addresses are connected to. */
  network?: Network;
  /** Certificates to trust instead of the system's, PEM. */
  certificateAuthorities?: readonly string[];
  /** Told of every request that is made, redirects included. */
  onRequest?: (hop: { method: string; host: string; port: number }) => void;
}

const CONNECT_TIMEOUT = 5_000;
const HEADERS_TIMEOUT = 10_000;
const TOTAL_TIMEOUT = 30_000;
const MAX_REDIRECTS = 5;
const MAX_BYTES = 1_048_576;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

interface Hop {
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
}

export function createSafeFetch(options: SafeFetchOptions): SafeFetch {
  return (request, rules, op) =>
    withTimeout(op, options.clock, TOTAL_TIMEOUT, async (bounded) => {
      try {
        return await follow(request, rules, bounded, options);
      } catch (error) {
        if (isTemperError(error)) throw error;
        const reason = bounded.signal.aborted ? 'no complete answer in time' : reasonOf(error);
        throw new TemperError('TEMPER_FETCH_FAILED', `the request failed: ${reason}`, {
          cause: error,
          retry: 'backoff',
        });
      }
    });
}

async function follow(
  request: FetchRequest,
  rules: TargetRules,
  op: Op,
  options: SafeFetchOptions,
): Promise<FetchAnswer> {
  let hop = firstHop(request);
  let target = vetTarget(request.url, rules);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const answer = await once(target, hop, op, options);
    if (typeof answer.location !== 'string') return { ...answer.answer, redirected: redirects > 0 };
    const next = vetTarget(absolute(answer.location, target), rules);
    if (target.secure && !next.secure) {
      throw new TemperError('TEMPER_FETCH_DENIED', `${target.host} redirects from https to http`);
    }
    hop = nextHop(hop, answer.answer.status, next.url.origin !== target.url.origin);
    target = next;
  }
  throw new TemperError('TEMPER_FETCH_FAILED', `more than ${MAX_REDIRECTS} redirects`);
}

function firstHop(request: FetchRequest): Hop {
  const method = (request.method ?? 'GET').toUpperCase();
  if (!METHODS.has(method)) {
    throw new TemperError('TEMPER_FETCH_DENIED', `the method is not one of ${[...METHODS].join(', ')}`);
  }
  const body = method === 'GET' || method === 'HEAD' ? undefined : request.body;
  if (body !== undefined && Buffer.byteLength(body) > MAX_BYTES) {
    throw new TemperError('TEMPER_FETCH_DENIED', `the body is larger than ${MAX_BYTES} bytes`);
  }
  return { method, headers: headersToSend(request.headers ?? {}), body };
}

/** 303, and 301 and 302 after a POST, become a GET; a change of origin drops what was meant for the first. */
function nextHop(hop: Hop, status: number, otherOrigin: boolean): Hop {
  const headers = otherOrigin ? withoutCredentials(hop.headers) : hop.headers;
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : status < 303 && hop.method === 'POST';
  return becomesGet ? { method: 'GET', headers, body: undefined } : { ...hop, headers };
}

function absolute(location: string, target: Target): string {
  return URL.canParse(location) ? location : (URL.parse(location, target.url)?.href ?? location);
}

interface HopAnswer {
  answer: FetchAnswer;
  /** Where a redirect leads. */
  location?: string;
}

async function once(target: Target, hop: Hop, op: Op, options: SafeFetchOptions): Promise<HopAnswer> {
  const network = options.network ?? systemNetwork;
  const addresses = await vetAddresses(target, network, op.signal);
  options.onRequest?.({ method: hop.method, host: target.host, port: target.port });
  const connecting = AbortSignal.any([op.signal, AbortSignal.timeout(CONNECT_TIMEOUT)]);
  const socket = await dial(target, addresses, network, connecting, options.certificateAuthorities);
  const agent = new Agent({
    // The one connection that was vetted; whatever asks for another gets none. An answer in the same tick is not heard.
    connect: (_ignored, callback) => {
      queueMicrotask(() => {
        if (socket.destroyed) callback(new Error('the connection is gone'), null);
        else callback(null, socket);
      });
    },
    headersTimeout: HEADERS_TIMEOUT,
    bodyTimeout: HEADERS_TIMEOUT,
    pipelining: 1,
  });
  try {
    const response = await send(target.url, {
      dispatcher: agent,
      method: hop.method as 'GET',
      headers: hop.headers,
      body: hop.body ?? null,
      signal: op.signal,
    });
    const { location } = response.headers;
    const redirects = [301, 302, 303, 307, 308].includes(response.statusCode) && typeof location === 'string';
    const body = redirects ? '' : await readBody(response.body, response.headers['content-encoding'], op.signal);
    const answer: FetchAnswer = {
      status: response.statusCode,
      headers: headersToReturn(response.headers),
      body,
      url: target.url.href,
      redirected: false,
    };
    return redirects ? { answer, location } : { answer };
  } finally {
    await agent.destroy();
    socket.destroy();
  }
}

/** The text of the body, decompressed. The limit is on what comes out, so that a small bomb is as large as it is. */
async function readBody(body: Readable, encoding: string | string[] | undefined, signal: AbortSignal): Promise<string> {
  const source = decoded(body, encoding);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    size += chunk.length;
    if (size > MAX_BYTES) {
      body.destroy();
      throw new TemperError('TEMPER_FETCH_FAILED', `the answer is larger than ${MAX_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
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
    default:
      throw new TemperError('TEMPER_FETCH_FAILED', 'the answer is compressed in a way that was not asked for');
  }
}

/** A few words of ours; what the network wrote stays in the cause. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'no connection in time';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^[A-Z][A-Z0-9_]{2,40}$/.test(code) ? code : 'the connection broke or the answer is not HTTP';
}
