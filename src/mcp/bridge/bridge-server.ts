/** Streamable HTTP (revision 2025-11-25 and earlier ones with sessions) on one side, processes that talk over lines on the other. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type JSONRPCMessage, type JSONRPCRequest, parseJSONRPCMessage } from '@modelcontextprotocol/client';
import { MCP_BRIDGE } from '../../api/cluster.ts';
import { messageOf } from '../../lib/errors.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { readBody } from '../../lib/async/read-body.ts';
import { MAX_MESSAGE_BYTES, messageProblem } from '../client/connection/message-limits.ts';
import type { BridgeSession } from './bridge-session.ts';
import type { BridgeSessions, BridgedSession } from './bridge-sessions.ts';

/** Bytes of a stream that its client does not read. */
const MAX_UNREAD_BYTES = 2 * 1_024 * 1_024;
const SESSION = 'mcp-session-id';

/** A request that is refused, with the status and the text of its answer. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The handler of the endpoint `/mcp`, and of `/healthz` for probes. */
export function bridgeHandler(sessions: BridgeSessions): RequestListener {
  return (request, response) => {
    answer(sessions, request, response).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      const status = error instanceof Refusal ? error.status : 500;
      const body = { jsonrpc: '2.0', id: null, error: { code: -32_000, message: messageOf(error, 1_000) } };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  };
}

async function answer(sessions: BridgeSessions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url } = request;
  if (url === '/healthz') return void response.writeHead(200).end();
  if (url !== MCP_BRIDGE.path) throw new Refusal(404, `the endpoint is ${MCP_BRIDGE.path}`);
  const id = headerOf(request, SESSION);
  if (method === 'GET') return listen(sessionOf(sessions, id), response);
  if (method === 'DELETE') {
    sessionOf(sessions, id);
    await sessions.close(id);
    return void response.writeHead(204).end();
  }
  if (method !== 'POST') throw new Refusal(405, 'the methods are POST, GET and DELETE');
  const message = parseMessage(
    await readBody(request, MAX_MESSAGE_BYTES, () => new Refusal(413, 'the message is too large')),
  );
  const opened = id === '' ? await openFor(sessions, message, ownerOf(request)) : undefined;
  if (opened !== undefined) response.setHeader(SESSION, opened.id);
  const session = opened?.session ?? sessionOf(sessions, id);
  const onLeft = (): void => {
    // Its client knows no ID of a session whose beginning it did not wait for.
    if (opened !== undefined && !response.writableFinished) void sessions.close(opened.id);
  };
  if (response.closed) return onLeft();
  response.once('close', onLeft);
  if (!('method' in message) || !('id' in message)) {
    await session.send(message);
    return void response.writeHead(202).end();
  }
  await exchange(session, message, response);
}

async function exchange(session: BridgeSession, message: JSONRPCRequest, response: ServerResponse): Promise<void> {
  const { id } = message;
  if (!session.accepts(id)) throw new Refusal(429, 'the session has too many requests, or one with this ID');
  response.once('close', () => session.forget(id));
  const answered = await session.ask(message);
  // As a server that has forgotten a session answers, so that the client opens another one.
  if (answered === undefined) throw new Refusal(404, `the session has ended: ${session.failure ?? 'it was closed'}`);
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answered));
}

async function openFor(
  sessions: BridgeSessions,
  message: JSONRPCMessage,
  owner: BridgedSession,
): Promise<{ id: string; session: BridgeSession }> {
  if (!('method' in message) || message.method !== 'initialize')
    throw new Refusal(400, 'a session begins with initialize');
  const opened = await sessions.open(owner);
  if (opened === undefined) throw new Refusal(503, 'every session of this server is in use');
  return opened;
}

function listen(session: BridgeSession, response: ServerResponse): void {
  const stop = session.listen((message) => {
    response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    if (response.writableLength > MAX_UNREAD_BYTES) session.kill('its client does not read what it sends');
  });
  if (stop === undefined) throw new Refusal(409, 'the session has a stream already');
  response.on('close', stop);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).flushHeaders();
}

function sessionOf(sessions: BridgeSessions, id: string): BridgeSession {
  const session = sessions.find(id);
  if (session === undefined) throw new Refusal(404, 'there is no such session');
  return session;
}

function ownerOf(request: IncomingMessage): BridgedSession {
  const key = headerOf(request, MCP_BRIDGE.sessionHeader);
  return { namespace: headerOf(request, MCP_BRIDGE.ownerHeader), key: key === '' ? undefined : key };
}

function parseMessage(text: string): JSONRPCMessage {
  const problem = messageProblem(text);
  if (problem !== undefined) throw new Refusal(400, problem);
  try {
    return parseJSONRPCMessage(parseUntrustedJson(text));
  } catch {
    throw new Refusal(400, 'the body is not a message of JSON-RPC 2.0');
  }
}

function headerOf({ headers }: IncomingMessage, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}
