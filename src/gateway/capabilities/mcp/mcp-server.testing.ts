/** An MCP server over HTTP, with sessions of revision 2025-11-25, that does what a test says. It uses no library. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';

type Members = Record<string, unknown>;

interface AnsweredRequest {
  method: string;
  rpc: string;
  session: string;
  authorization: string;
}

interface Call {
  name: string;
  input: Members;
  session: string;
  id: unknown;
  response: ServerResponse;
}

export const LISTED: Members = {
  name: 'find',
  description: 'Finds.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
};

export class TestServer {
  /** What it lists. */
  tools: Members[] = [LISTED];
  /** The result of a call; undefined: the function has answered, or never does. */
  call: (call: Call) => Members | undefined = ({ session }) => said(`session ${session}`);
  /** Answers all requests in place of this server. */
  answers: RequestListener | undefined;
  /** Answers in place of the protocol; false: it did not. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  readonly requests: AnsweredRequest[] = [];
  readonly ended: string[] = [];
  readonly #streams = new Map<string, ServerResponse>();
  #sessions = 0;

  readonly handler: RequestListener = (request, response) => {
    if (this.answers !== undefined) return this.answers(request, response);
    this.#answer(request, response).catch(() => response.destroy());
  };

  /** The number of requests of a method of the protocol. */
  count(rpc: string): number {
    return this.requests.filter((request) => request.rpc === rpc).length;
  }

  /** Sends a notification to all sessions that listen. */
  notify(method: string): void {
    for (const stream of this.#streams.values())
      stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method })}\n\n`);
  }

  get listening(): number {
    return this.#streams.size;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request;
    const session = String(headers['mcp-session-id'] ?? '');
    const isJson = headers['content-type'] === 'application/json';
    const message = method === 'POST' && isJson ? ((await json(request)) as Members) : {};
    const rpc = typeof message['method'] === 'string' ? message['method'] : '';
    this.requests.push({ method, rpc, session, authorization: headers.authorization ?? '' });
    if (this.intercept(request, response)) return;
    if (method === 'GET') return this.#listen(session, response);
    if (method === 'DELETE') {
      this.ended.push(session);
      return void response.writeHead(204).end();
    }
    const { id } = message;
    if (id === undefined) return void response.writeHead(202).end();
    const result = this.#resultOf(rpc, (message['params'] ?? {}) as Members, { session, id, response });
    if (result !== undefined) reply(response, id, result);
  }

  #listen(session: string, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    this.#streams.set(session, response);
    response.on('close', () => this.#streams.delete(session));
  }

  #resultOf(rpc: string, params: Members, call: Pick<Call, 'session' | 'id' | 'response'>): Members | undefined {
    if (rpc === 'initialize') {
      call.response.setHeader('mcp-session-id', `s-${(this.#sessions += 1)}`);
      const serverInfo = { name: 'test', version: '1' };
      return { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } }, serverInfo };
    }
    if (rpc === 'tools/list') return { tools: this.tools };
    if (rpc === 'tools/call')
      return this.call({ ...call, name: String(params['name']), input: (params['arguments'] ?? {}) as Members });
    call.response.writeHead(400).end();
    return undefined;
  }
}

export function reply(response: ServerResponse, id: unknown, result: Members): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

export function said(text: string): Members {
  return { content: [{ type: 'text', text }] };
}
