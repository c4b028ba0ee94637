import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PeerAccount, PeerPath } from '../../../a2a/callers.ts';
import { A2A_PATH } from '../../../a2a/card.ts';
import { answerRpc, cardAnswer, versionOf } from '../../../a2a/json-rpc.ts';
import { A2A_LIMITS, VERSION_HEADER } from '../../../a2a/protocol.ts';
import type { PeerCalls } from '../../../a2a/peer-calls.ts';
import { PeerRequestHandler } from '../../../a2a/request-handler.ts';
import type { PeerTask } from '../../../bus/peer-task.ts';
import { readBody } from '../../../lib/async/read-body.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, JsonScanner, parseUntrustedJson } from '../../../lib/json.ts';
import { type LoopbackServer, sendJson, startLoopbackServer } from '../http/loopback-server.ts';
import type { LocalCallers } from './callers-file.ts';

export interface A2aServerOptions {
  /** On the loopback interface; 0: any free port. */
  port: number;
  callers: LocalCallers;
  /** Throws TEMPER_NOT_FOUND for an agent that does not list the caller. */
  calls: (path: PeerPath, account: PeerAccount, url: string) => PeerCalls<PeerTask>;
  /** Aborts when the process ends: streams end then. */
  signal: AbortSignal;
  /** An error that is not the caller's. */
  onError: (message: string) => void;
}

const [PREFIX = ''] = A2A_PATH.split('/:namespace');
const CARD = '/.well-known/agent-card.json';
const PATH = /^\/([a-z0-9-]{1,63})\/agents\/([a-z0-9.-]{1,253})(\/\.well-known\/agent-card\.json)?$/;
/** Requests of one caller at a time, streams among them. */
const MAX_REQUESTS = 16;
const MAX_DEPTH = 64;
const KEEP_ALIVE_MS = 15_000;

/** Serves agents over A2A on the loopback interface. Throws TEMPER_USAGE for a port that is in use or may not be used. */
export async function startA2aServer(options: A2aServerOptions): Promise<LoopbackServer> {
  const open = new Map<string, number>();
  const server: LoopbackServer = await startLoopbackServer({
    ...options,
    option: '--a2a',
    what: 'a call over A2A',
    answer: (request, response) => answer(request, response, { ...options, open, url: server.url }),
  });
  return server;
}

interface AnswerDeps extends A2aServerOptions {
  open: Map<string, number>;
  url: string;
}

async function answer(request: IncomingMessage, response: ServerResponse, deps: AnswerDeps): Promise<void> {
  const account = callerOf(request, deps.callers);
  using _request = takeRequest(`${account.namespace}/${account.account}`, deps.open);
  const { path, isCard } = pathOf(request);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const signal = AbortSignal.any([gone.signal, deps.signal]);
  const handler = new PeerRequestHandler(deps.calls(path, account, deps.url), signal);
  const version = versionOf(request.headers);
  if (isCard) {
    response.setHeader('vary', VERSION_HEADER);
    response.setHeader('cache-control', 'no-store');
    return sendJson(response, 200, await cardAnswer(handler, version));
  }
  const result = await answerRpc(await bodyOf(request), version, handler);
  if ('json' in result) return sendJson(response, 200, result.json);
  await sendEvents(response, result.events);
}

/** One answer for a missing and for an unknown token. */
function callerOf({ headers }: IncomingMessage, callers: LocalCallers): PeerAccount {
  const [, token = ''] = /^Bearer ([^ ]{1,4096})$/i.exec(headers.authorization ?? '') ?? [];
  const account = callers.withToken(token);
  if (account !== undefined) return account;
  throw new TemperError('TEMPER_TOKEN_INVALID', 'send the token of a caller as Authorization: Bearer TOKEN');
}

function takeRequest(caller: string, open: Map<string, number>): Disposable {
  const count = open.get(caller) ?? 0;
  if (count >= MAX_REQUESTS)
    throw new TemperError('TEMPER_RATE_LIMITED', `${MAX_REQUESTS} requests of this caller are open; end one`, {
      retry: 1_000,
    });
  open.set(caller, count + 1);
  return { [Symbol.dispose]: () => void open.set(caller, (open.get(caller) ?? 1) - 1) };
}

function pathOf({ method, url = '' }: IncomingMessage): { path: PeerPath; isCard: boolean } {
  const found = url.startsWith(`${PREFIX}/`) ? PATH.exec(url.slice(PREFIX.length)) : null;
  const [, namespace, agent, card] = found ?? [];
  const isCard = card !== undefined;
  if (namespace !== undefined && agent !== undefined && method === (isCard ? 'GET' : 'POST'))
    return { path: { namespace, agent }, isCard };
  const shown = `${PREFIX}/NAMESPACE/agents/AGENT`;
  throw new TemperError('TEMPER_NOT_FOUND', `the paths are POST ${shown} and GET ${shown}${CARD}`);
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const { bodyBytes, bodyValues } = A2A_LIMITS;
  const tooLarge = (): TemperError =>
    new TemperError(
      'TEMPER_REQUEST_TOO_LARGE',
      `the body has more than ${bodyBytes} bytes, ${bodyValues} values or ${MAX_DEPTH} levels`,
    );
  // The response of a request that is too large needs its connection.
  const text = await readBody(request.iterator({ destroyOnReturn: false }), bodyBytes, tooLarge);
  const scanner = new JsonScanner({ values: bodyValues, depth: MAX_DEPTH });
  if (scanner.scan(Buffer.from(text)) !== undefined) throw tooLarge();
  try {
    return parseUntrustedJson(text);
  } catch (cause) {
    throw new TemperError('TEMPER_REQUEST_INVALID', 'the body is not JSON', { cause });
  }
}

async function sendEvents(response: ServerResponse, events: AsyncGenerator<string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const keepAlive = setInterval(() => response.write(':\n\n'), KEEP_ALIVE_MS);
  try {
    // The events of one task are few and small, so a slow reader holds little.
    for await (const event of events) response.write(event);
  } finally {
    clearInterval(keepAlive);
    response.end();
  }
}
