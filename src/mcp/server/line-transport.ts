import { type JSONRPCMessage, parseJSONRPCMessage, type RequestId, type Transport } from '@modelcontextprotocol/server';
import { Notifier } from '../../lib/async/notifier.ts';
import { type JsonLimits, jsonExcess, parseUntrustedJson } from '../../lib/json.ts';

const LIMITS: JsonLimits = { values: 100_000, depth: 64 };
/** Requests without an answer. Further input waits. */
const MAX_UNANSWERED = 64;
/** JSON-RPC. */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

export interface LineTransportDeps {
  /** Bounded by its reader. */
  lines: AsyncIterable<string>;
  /** Writes one message as one line. */
  write(message: JSONRPCMessage): void;
}

/**
 * JSON-RPC messages as lines over a pipe, from a program that Temper does not trust. A client that sends faster than
 * it is answered waits.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #deps: LineTransportDeps;
  readonly #unanswered = new Set<RequestId>();
  readonly #answered = new Notifier();
  readonly #closed = new AbortController();
  readonly #ended = Promise.withResolvers<void>();

  constructor(deps: LineTransportDeps) {
    this.#deps = deps;
  }

  /** Resolves when the input has ended or the transport is closed; rejects with what ended the input. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  async start(): Promise<void> {
    this.#read().then(this.#ended.resolve, this.#ended.reject);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed.signal.aborted) return;
    if (!('method' in message) && message.id !== undefined) this.#settle(message.id);
    this.#deps.write(message);
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.onclose?.();
  }

  async #read(): Promise<void> {
    const { signal } = this.#closed;
    try {
      for await (const line of this.#deps.lines) {
        if (line.trim() !== '') this.#receive(line);
        while (this.#unanswered.size >= MAX_UNANSWERED && !signal.aborted) await this.#answered.wait(signal);
        if (signal.aborted) return;
      }
    } finally {
      await this.close();
    }
  }

  #receive(line: string): void {
    const message = this.#parse(line);
    if (message === undefined) return;
    if ('method' in message && 'id' in message) {
      if (this.#unanswered.has(message.id)) {
        this.#refuse(INVALID_REQUEST, 'another request with this id has no answer yet; use an id once');
        return;
      }
      this.#unanswered.add(message.id);
    } else if ('method' in message && message.method === 'notifications/cancelled') {
      // Cancelled requests get no answer.
      const id = message.params?.['requestId'];
      if (typeof id === 'string' || typeof id === 'number') this.#settle(id);
    }
    this.onmessage?.(message);
  }

  /** Undefined for a line that is no message, which has been answered. */
  #parse(line: string): JSONRPCMessage | undefined {
    const excess = jsonExcess(line, LIMITS);
    if (excess !== undefined) {
      this.#refuse(INVALID_REQUEST, `the message has more ${excess} than the limit of ${LIMITS[excess]}`);
      return undefined;
    }
    let value: unknown;
    try {
      value = parseUntrustedJson(line);
    } catch {
      this.#refuse(PARSE_ERROR, 'the line is not JSON; send each message as one line of JSON');
      return undefined;
    }
    try {
      return parseJSONRPCMessage(value);
    } catch {
      this.#refuse(INVALID_REQUEST, 'the line is not a message of JSON-RPC 2.0');
      return undefined;
    }
  }

  #refuse(code: number, message: string): void {
    if (!this.#closed.signal.aborted) this.#deps.write({ jsonrpc: '2.0', error: { code, message } });
  }

  #settle(id: RequestId): void {
    if (this.#unanswered.delete(id)) this.#answered.notifyAll();
  }
}
