import { randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { PipedProcess } from '../../sandbox/confined/piped-process.ts';
import { BridgeSession } from './bridge-session.ts';

export interface BridgeSessionsDeps {
  /** Starts the process of a session. `number` is less than `max`, and no other process that runs has it. */
  start(number: number): Promise<PipedProcess>;
  /** Sessions at the same time. */
  max: number;
  clock: Clock;
  /** Called when the process of a session has ended, with the reason and none of its output. */
  onEnded(reason: string): void;
}

interface Held {
  readonly session: BridgeSession;
  readonly number: number;
  /** Of the last request, in milliseconds of the monotonic clock. */
  usedAt: number;
}

/** A gateway closes its sessions earlier; one that was killed does not. */
const IDLE_MS = 600_000;
const SWEEP_MS = 30_000;

/**
 * The sessions of one MCP server, each with a process of its own. When all places are taken, the namespace with the most sessions loses the
 * one without a request that was used longest ago.
 */
export class BridgeSessions implements AsyncDisposable {
  readonly #deps: BridgeSessionsDeps;
  readonly #held = new Map<string, Held>();
  readonly #free: number[];
  readonly #stopped = new AbortController();
  readonly #ending = new Set<Promise<void>>();

  constructor(deps: BridgeSessionsDeps) {
    this.#deps = deps;
    this.#free = Array.from({ length: deps.max }, (_, number) => number);
    void this.#sweep();
  }

  /** The number of sessions. */
  get size(): number {
    return this.#held.size;
  }

  /** Starts the process of a new session. Undefined when every place has a session with a request. Throws what the start throws. */
  async open(owner: string): Promise<{ id: string; session: BridgeSession } | undefined> {
    if (this.#stopped.signal.aborted) return undefined;
    if (this.#free.length === 0) await this.#displace();
    const number = this.#free.pop();
    if (number === undefined) return undefined;
    let session: BridgeSession;
    try {
      session = await BridgeSession.open(await this.#deps.start(number), owner, this.#deps.clock);
    } catch (error) {
      this.#free.push(number);
      throw error;
    }
    const id = randomUUID();
    this.#held.set(id, { session, number, usedAt: this.#deps.clock.monotonic() });
    if (this.#stopped.signal.aborted) await this.close(id);
    return { id, session };
  }

  /** The session, which counts as used now; undefined when it has ended. */
  find(id: string): BridgeSession | undefined {
    const held = this.#held.get(id);
    if (held === undefined) return undefined;
    const { ended } = held.session;
    if (ended !== undefined) {
      this.#onEnded(id, ended);
      return undefined;
    }
    held.usedAt = this.#deps.clock.monotonic();
    return held.session;
  }

  /** Ends the process. Its place is free when its home is gone. */
  async close(id: string): Promise<void> {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    const ending = this.#end(held).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    await ending;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    for (const id of this.#held.keys()) void this.close(id);
    await Promise.allSettled(this.#ending);
  }

  #onEnded(id: string, reason: string): void {
    this.#deps.onEnded(reason);
    void this.close(id);
  }

  async #end({ session, number }: Held): Promise<void> {
    try {
      await session[Symbol.asyncDispose]();
      this.#free.push(number);
    } catch (error) {
      // A home that cannot be removed is given to no other session.
      this.#deps.onEnded(`its home cannot be removed: ${messageOf(error, 200)}`);
    }
  }

  async #displace(): Promise<void> {
    const idle = [...this.#held].filter(([, { session }]) => !session.isBusy);
    const groups = Map.groupBy(this.#held.values(), ({ session }) => session.owner);
    const sizeOf = ([, { session }]: [string, Held]): number => groups.get(session.owner)?.length ?? 0;
    const [first] = idle.sort((a, b) => sizeOf(b) - sizeOf(a) || a[1].usedAt - b[1].usedAt);
    if (first !== undefined) await this.close(first[0]);
  }

  async #sweep(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#stopped.signal.aborted) {
      await clock.sleep(SWEEP_MS, this.#stopped.signal).catch(() => undefined);
      const before = clock.monotonic() - IDLE_MS;
      for (const [id, { session, usedAt }] of this.#held) {
        if (session.ended !== undefined) this.#onEnded(id, session.ended);
        else if (usedAt < before && !session.isBusy) void this.close(id);
      }
    }
  }
}
