import type { JSONRPCMessage, JSONRPCRequest, RequestId } from '@modelcontextprotocol/client';
import { isJsonObject } from '../../lib/json.ts';
import type { BridgeProcess, Listener } from './bridge-process.ts';

/** Requests that the server has not answered. The gateway has fewer. */
const MAX_WAITING = 32;

/** The MCP session of one client. Other sessions may share its process. */
export class BridgeSession implements Disposable {
  readonly #process: BridgeProcess;
  /** IDs of the process, by those of the client. */
  readonly #waiting = new Map<RequestId, number>();
  #stopListening: (() => void) | undefined;

  constructor(process: BridgeProcess) {
    this.#process = process;
  }

  /** Why the process has ended, for the caller: untrusted text that enters no log. Undefined while it runs. */
  get failure(): string | undefined {
    return this.#process.failure;
  }

  /** Whether a request waits for its answer. */
  get isBusy(): boolean {
    return this.#waiting.size > 0;
  }

  /** False for a request that the session takes no more, or whose ID is in use. */
  accepts(id: RequestId): boolean {
    return this.#waiting.size < MAX_WAITING && !this.#waiting.has(id);
  }

  /** The answer of the server; undefined when its process, or this session, ended first. */
  async ask(request: JSONRPCRequest): Promise<JSONRPCMessage | undefined> {
    const { id } = request;
    const asked = this.#process.ask(request);
    this.#waiting.set(id, asked.id);
    const answer = await asked.answer;
    this.#waiting.delete(id);
    return answer === undefined ? undefined : ({ ...answer, id } as JSONRPCMessage);
  }

  /** The client does not wait for the answer any more. */
  forget(id: RequestId): void {
    const asked = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (asked !== undefined) this.#process.forget(asked);
  }

  /** Sends what has no answer. The cancellation of a request that this session does not wait for is dropped. */
  async send(message: JSONRPCMessage): Promise<void> {
    const known = this.#withKnownId(message);
    if (known !== undefined) await this.#process.send(known);
  }

  /** Takes what the server sends unasked, until the function that it returns is called. Undefined when someone does already. */
  listen(listener: Listener): (() => void) | undefined {
    if (this.#stopListening !== undefined) return undefined;
    const stop = this.#process.listen(listener);
    this.#stopListening = stop;
    return () => {
      stop();
      if (this.#stopListening === stop) this.#stopListening = undefined;
    };
  }

  kill(reason: string): void {
    this.#process.kill(reason);
  }

  [Symbol.dispose](): void {
    this.#stopListening?.();
    for (const id of this.#waiting.keys()) this.forget(id);
  }

  #withKnownId(message: JSONRPCMessage): JSONRPCMessage | undefined {
    if (!('method' in message) || message.method !== 'notifications/cancelled') return message;
    const { params } = message;
    const cancelled = isJsonObject(params) ? params['requestId'] : undefined;
    const requestId = this.#waiting.get(cancelled as RequestId);
    return requestId === undefined ? undefined : { ...message, params: { ...params, requestId } };
  }
}
