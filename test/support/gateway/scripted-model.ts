import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readBody } from '../../../src/lib/async/read-body.ts';

/** A request of the Chat Completions API, as far as tests read it. */
interface ChatRequest {
  messages: { role: string; content?: string; tool_call_id?: string }[];
  tools?: { function: { name: string } }[];
}

/** A call of the model. `before` happens after the request arrived and before its answer. */
export interface ScriptedCall {
  name: string;
  input: object;
  before?: () => Promise<void>;
}

/** A model that makes the calls of its script, one per request, and then answers `done`. */
export class ScriptedModel implements AsyncDisposable {
  readonly #server: Server;
  #calls: ScriptedCall[] = [];
  #requests: ChatRequest[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async start(): Promise<ScriptedModel> {
    const model = new ScriptedModel();
    await new Promise<void>((resolve) => model.#server.listen(0, '127.0.0.1', resolve));
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Begins another script. */
  play(calls: readonly ScriptedCall[]): void {
    this.#calls = [...calls];
    this.#requests = [];
  }

  /** The names of the tools of each request since then, sorted. */
  get offered(): string[][] {
    return this.#requests.map(({ tools = [] }) => tools.map((tool) => tool.function.name).toSorted());
  }

  /** The system prompt of the first request since then. */
  get prompt(): string {
    return this.#requests[0]?.messages.find(({ role }) => role === 'system')?.content ?? '';
  }

  /** What the model got for the calls of the script, in their order. */
  get results(): string[] {
    const messages = this.#requests.at(-1)?.messages ?? [];
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    return messages.slice(asked).flatMap(({ role, content }) => (role === 'tool' ? [content ?? ''] : []));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, 4_000_000, () => new Error('too large'));
    const position = this.#requests.push(JSON.parse(body) as ChatRequest) - 1;
    const call = this.#calls[position];
    await call?.before?.();
    const delta = call === undefined ? { content: 'done' } : { tool_calls: [toolCall(call, position)] };
    const choice = { index: 0, delta, finish_reason: call === undefined ? 'stop' : 'tool_calls' };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ model: 'm', choices: [choice] })}\n\ndata: [DONE]\n\n`);
  }
}

function toolCall({ name, input }: ScriptedCall, position: number): object {
  return { index: 0, id: `call-${position}`, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}
