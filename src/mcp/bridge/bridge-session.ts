import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import type { Clock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import type { PipedProcess } from '../../sandbox/confined/piped-process.ts';
import { ProcessTransport } from '../client/connection/process-transport.ts';

/** Requests that the server has not answered. The gateway has fewer. */
const MAX_WAITING = 32;

type Answer = (message: JSONRPCMessage | undefined) => void;

/** One MCP session: a process of its own, and what a client asked it. */
export class BridgeSession implements AsyncDisposable {
  /** The namespace of the agent. */
  readonly owner: string;
  readonly #process: PipedProcess;
  readonly #transport: ProcessTransport;
  readonly #waiting = new Map<RequestId, Answer>();
  #listener: ((message: JSONRPCMessage) => void) | undefined;

  private constructor(process: PipedProcess, owner: string, clock: Pick<Clock, 'monotonic'>) {
    this.owner = owner;
    this.#process = process;
    this.#transport = new ProcessTransport(process, clock);
    this.#transport.onmessage = (message) => this.#receive(message);
    this.#transport.onclose = () => this.#endAll();
  }

  static async open(process: PipedProcess, owner: string, clock: Pick<Clock, 'monotonic'>): Promise<BridgeSession> {
    const session = new BridgeSession(process, owner, clock);
    await session.#transport.start();
    return session;
  }

  /** Why the process has ended; undefined while it runs. */
  get ended(): string | undefined {
    const { ended } = this.#process;
    return ended === undefined ? undefined : printable(ended, 1_000);
  }

  /** The same for the caller, with the beginning of the standard error: untrusted text that enters no log. */
  get failure(): string | undefined {
    const { ended, stderr } = this.#process;
    if (ended === undefined) return undefined;
    return printable(stderr === '' ? ended : `${ended}; its standard error begins: ${stderr}`, 1_000);
  }

  /** Whether a request waits for its answer. */
  get isBusy(): boolean {
    return this.#waiting.size > 0;
  }

  /** False for a request that the session takes no more, or whose ID is in use. */
  accepts(id: RequestId): boolean {
    return this.#waiting.size < MAX_WAITING && !this.#waiting.has(id);
  }

  /** The answer of the server; undefined when its process ended first. */
  async ask(id: RequestId, message: JSONRPCMessage): Promise<JSONRPCMessage | undefined> {
    const { promise, resolve } = Promise.withResolvers<JSONRPCMessage | undefined>();
    this.#waiting.set(id, resolve);
    await this.tell(message);
    return promise;
  }

  /** The client does not wait for the answer any more. */
  forget(id: RequestId): void {
    this.#waiting.delete(id);
  }

  /** Sends what has no answer. A process that has ended gets nothing. */
  async tell(message: JSONRPCMessage): Promise<void> {
    if (this.#process.ended !== undefined) return this.#endAll();
    await this.#transport.send(message);
  }

  /** Takes what the server sends unasked, until the function that it returns is called. Undefined when someone does already. */
  listen(listener: (message: JSONRPCMessage) => void): (() => void) | undefined {
    if (this.#listener !== undefined) return undefined;
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = undefined;
    };
  }

  kill(reason: string): void {
    this.#process.kill(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }

  #receive(message: JSONRPCMessage): void {
    if ('method' in message) return this.#listener?.(message);
    const { id } = message;
    const answer = id === undefined ? undefined : this.#waiting.get(id);
    if (id === undefined || answer === undefined) return;
    this.#waiting.delete(id);
    answer(message);
  }

  #endAll(): void {
    for (const answer of this.#waiting.values()) answer(undefined);
    this.#waiting.clear();
  }
}
