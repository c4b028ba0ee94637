import { type JSONRPCMessage, parseJSONRPCMessage, type RequestId, type Transport } from '@modelcontextprotocol/client';
import { LineSplitter } from '../../../lib/async/line-splitter.ts';
import { TokenBucket } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import { messageOf } from '../../../lib/errors.ts';
import { parseUntrustedJson } from '../../../lib/json.ts';
import { MAX_MESSAGE_BYTES, messageProblem, UNASKED } from './message-limits.ts';
import type { PipedProcess } from '../../../sandbox/confined/piped-process.ts';

/** Bytes that wait for a server that does not read. */
const MAX_WAITING_BYTES = 16 * 1_024 * 1_024;

/**
 * Messages as lines over the pipes of a process. A server that sends what is no message, floods, or does not read is killed: nothing that it
 * sends later could be trusted to belong to what it was asked.
 */
export class ProcessTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #process: PipedProcess;
  readonly #unasked: TokenBucket;
  readonly #asked = new Set<RequestId>();
  #isClosed = false;

  constructor(process: PipedProcess, clock: Pick<Clock, 'monotonic'>) {
    this.#process = process;
    this.#unasked = new TokenBucket(clock, UNASKED);
  }

  /** With `stderr`, what the SDK knows a transport over a process by: a server that does not answer its first question may be an older one. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  get stderr(): null {
    return null;
  }

  async start(): Promise<void> {
    const lines = new LineSplitter(
      MAX_MESSAGE_BYTES,
      () => new Error(`a line has more than ${MAX_MESSAGE_BYTES} bytes`),
    );
    this.#process.stdout.on('data', (chunk: Buffer) => {
      try {
        for (const line of lines.push(chunk)) if (this.#process.ended === undefined) this.#receive(line);
      } catch (error) {
        this.#process.kill(messageOf(error, 200));
      }
    });
    void this.#process.exited.then(() => this.close());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin, ended } = this.#process;
    if (ended !== undefined) throw new Error(ended);
    if ('method' in message && 'id' in message) this.#asked.add(message.id);
    stdin.write(`${JSON.stringify(message)}\n`);
    if (stdin.writableLength > MAX_WAITING_BYTES) this.#process.kill('it does not read its input');
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#process.kill('the connection is closed');
    this.onclose?.();
  }

  #receive(line: string): void {
    const message = line.trim() === '' ? undefined : messageIn(line);
    if (!this.#isAnswer(message) && !this.#unasked.tryTake())
      throw new Error('it sends too much that it was not asked for');
    if (message !== undefined) this.onmessage?.(message);
  }

  #isAnswer(message: JSONRPCMessage | undefined): boolean {
    return (
      message !== undefined && !('method' in message) && message.id !== undefined && this.#asked.delete(message.id)
    );
  }
}

function messageIn(line: string): JSONRPCMessage {
  const problem = messageProblem(line);
  if (problem !== undefined) throw new Error(problem);
  try {
    return parseJSONRPCMessage(parseUntrustedJson(line));
  } catch (error) {
    throw new Error('it sent a line that is not a message of JSON-RPC 2.0', { cause: error });
  }
}
