import type { JSONRPCMessage, JSONRPCNotification, JSONRPCRequest } from '@modelcontextprotocol/client';
import type { Clock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import type { PipedProcess } from '../../sandbox/confined/piped-process.ts';
import { ProcessTransport } from '../client/connection/process-transport.ts';

type Answer = (message: JSONRPCMessage | undefined) => void;
export type Listener = (message: JSONRPCMessage) => void;

type BridgeClock = Pick<Clock, 'monotonic' | 'sleep'>;

/** A gateway waits as long. */
const INITIALIZE_MS = 30_000;

export interface Asked {
  /** The ID that the process knows the request by. */
  readonly id: number;
  /** The answer with that ID; undefined when the process ended first, or the session forgot the request. */
  readonly answer: Promise<JSONRPCMessage | undefined>;
}

/**
 * The process of an MCP server over lines. It knows one client: requests of all sessions get IDs of their own, it is initialized once, and
 * what it sends unasked goes to those who listen.
 */
export class BridgeProcess implements AsyncDisposable {
  readonly #process: PipedProcess;
  readonly #clock: BridgeClock;
  readonly #transport: ProcessTransport;
  readonly #waiting = new Map<number, Answer>();
  readonly #listeners = new Set<Listener>();
  #ids = 0;
  #initialization: Asked | undefined;
  #isInitialized = false;

  private constructor(process: PipedProcess, clock: BridgeClock) {
    this.#process = process;
    this.#clock = clock;
    this.#transport = new ProcessTransport(process, clock);
    this.#transport.onmessage = (message) => this.#receive(message);
    this.#transport.onclose = () => this.#endAll();
  }

  static async open(process: PipedProcess, clock: BridgeClock): Promise<BridgeProcess> {
    const opened = new BridgeProcess(process, clock);
    await opened.#transport.start();
    return opened;
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

  /** Sends the request. All sessions share one initialization; a process that does not answer it with a result is killed. */
  ask(request: JSONRPCRequest): Asked {
    if (request.method !== 'initialize') return this.#ask(request);
    this.#initialization ??= this.#initialize(request);
    return this.#initialization;
  }

  /** Gives the session that asked no answer. Others may wait for that of the initialization. */
  forget(id: number): void {
    if (id === this.#initialization?.id) return;
    this.#waiting.get(id)?.(undefined);
    this.#waiting.delete(id);
  }

  /** Sends a notification, or the answer to a request of the server. A process that has ended gets nothing. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (isInitialized(message)) {
      if (this.#isInitialized) return;
      this.#isInitialized = true;
    }
    if (this.#process.ended !== undefined) return this.#endAll();
    await this.#transport.send(message);
  }

  /** Calls the listener with what the server sends unasked, until the function that it returns is called. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  kill(reason: string): void {
    this.#process.kill(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }

  #initialize(request: JSONRPCRequest): Asked {
    const asked = this.#ask(request);
    void this.#killUnlessInitialized(asked.answer);
    return asked;
  }

  async #killUnlessInitialized(answer: Asked['answer']): Promise<void> {
    const answered = new AbortController();
    const kill = (): void => this.kill('it does not answer that it is initialized');
    this.#clock.sleep(INITIALIZE_MS, answered.signal).then(kill, () => undefined);
    const message = await answer;
    answered.abort();
    if (message !== undefined && 'error' in message) this.kill('it refuses to be initialized');
  }

  #ask(request: JSONRPCRequest): Asked {
    const { promise, resolve } = Promise.withResolvers<JSONRPCMessage | undefined>();
    this.#ids += 1;
    const id = this.#ids;
    this.#waiting.set(id, resolve);
    // A process that has just ended answers nothing, as its end says.
    this.send({ ...request, id }).catch(() => this.#endAll());
    return { id, answer: promise };
  }

  #receive(message: JSONRPCMessage): void {
    if ('method' in message) return this.#publish(message);
    const { id } = message;
    const answer = typeof id === 'number' ? this.#waiting.get(id) : undefined;
    if (typeof id !== 'number' || answer === undefined) return;
    this.#waiting.delete(id);
    answer(message);
  }

  /** A notification is for each listener, a request for one: it gets one answer. */
  #publish(message: JSONRPCRequest | JSONRPCNotification): void {
    for (const listener of this.#listeners) {
      listener(message);
      if ('id' in message) return;
    }
  }

  #endAll(): void {
    for (const answer of this.#waiting.values()) answer(undefined);
    this.#waiting.clear();
  }
}

function isInitialized(message: JSONRPCMessage): boolean {
  return 'method' in message && message.method === 'notifications/initialized';
}
