import { abortable, onAbort } from '../../../lib/async/abort.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { DeliveryTokenClaims } from '../../delivery/token.ts';
import { type PoolLimits, SESSION_LIMITS } from './session-limits.ts';

/** Whose calls a session carries. */
export type CallingSession = Pick<DeliveryTokenClaims, 'agentUid' | 'namespace' | 'session'>;

interface Poolable extends AsyncDisposable {
  /** False: no call can succeed any more. */
  readonly isOpen: boolean;
}

interface Held<T> {
  readonly owner: CallingSession;
  readonly opening: Promise<T>;
  opened?: T;
  calls: number;
  /** Ends the wait after the last call. */
  idle: AbortController;
}

type Entry<T> = readonly [key: string, held: Held<T>];

const RETRY_MS = 1_000;

/**
 * The MCP sessions of a gateway: one for each session of an agent and server, so that no agent reads through a server what another one
 * wrote. A session opens with the first call, is closed when none follows, and leaves when another one needs its place. An agent and a
 * namespace displace only their own sessions; when the gateway has no place, the namespace with the most sessions loses one.
 */
export class SessionPool<T extends Poolable> {
  readonly #clock: Clock;
  readonly #limits: PoolLimits;
  readonly #stopped: AbortSignal;
  /** The one that was used longest ago first. */
  readonly #held = new Map<string, Held<T>>();

  /** `stopped` closes all sessions. */
  constructor(clock: Clock, stopped: AbortSignal, limits: PoolLimits = SESSION_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
    this.#stopped = stopped;
    onAbort(stopped, () => {
      for (const key of this.#held.keys()) this.#close(key);
    });
  }

  /** The number of sessions, those that are opening included. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Works with the session of the owner at the server. Throws TEMPER_RATE_LIMITED when all places are in use,
   * TEMPER_MCP_SERVER_FAILED when the call ends first, what `open` throws, and what the work throws.
   */
  async during<R>(
    owner: CallingSession,
    server: string,
    open: (signal: AbortSignal) => Promise<T>,
    work: (session: T) => Promise<R>,
    { signal }: Pick<CallOptions, 'signal'>,
  ): Promise<R> {
    const key = JSON.stringify([owner.agentUid, owner.session, server]);
    const held = this.#usable(key) ?? this.#add(key, owner, open);
    held.calls += 1;
    held.idle.abort();
    try {
      return await work(await abortable(held.opening, signal, notOpened));
    } finally {
      held.calls -= 1;
      if (held.calls === 0) this.#onUnused(key, held);
    }
  }

  /** The session, which is now the one that was used last. */
  #usable(key: string): Held<T> | undefined {
    const held = this.#held.get(key);
    if (held === undefined) return undefined;
    if (held.opened?.isOpen === false) {
      this.#close(key);
      return undefined;
    }
    this.#held.delete(key);
    this.#held.set(key, held);
    return held;
  }

  #add(key: string, owner: CallingSession, open: (signal: AbortSignal) => Promise<T>): Held<T> {
    this.#stopped.throwIfAborted();
    this.#freePlace(owner);
    // Another call may wait for it too, so it does not end with this one.
    const opening = open(this.#stopped);
    const held: Held<T> = { owner, opening, calls: 0, idle: new AbortController() };
    this.#held.set(key, held);
    void this.#whenOpened(key, held);
    return held;
  }

  /** A session that opens after its end is closed again; one that does not open takes no place. */
  async #whenOpened(key: string, held: Held<T>): Promise<void> {
    try {
      held.opened = await held.opening;
    } catch {
      this.#forget(key, held);
      return;
    }
    if (this.#held.get(key) !== held) await dispose(held.opened);
  }

  #freePlace({ agentUid, namespace }: CallingSession): void {
    const { perAgent, perNamespace, all } = this.#limits;
    const held = [...this.#held];
    const ofAgent = held.filter(([, { owner }]) => owner.agentUid === agentUid);
    if (ofAgent.length >= perAgent) return this.#displace(ofAgent, 'of the agent');
    const ofNamespace = held.filter(([, { owner }]) => owner.namespace === namespace);
    if (ofNamespace.length >= perNamespace) return this.#displace(ofNamespace, 'of the namespace');
    if (held.length >= all) this.#displace(ofLargestNamespace(held), 'of all agents');
  }

  /** Closes the unused session that was used longest ago. */
  #displace(sessions: readonly Entry<T>[], whose: string): void {
    const unused = sessions.find(([, { calls }]) => calls === 0);
    if (unused !== undefined) return this.#close(unused[0]);
    throw new TemperError('TEMPER_RATE_LIMITED', `all MCP sessions ${whose} at this gateway are in use`, {
      retry: RETRY_MS,
    });
  }

  #onUnused(key: string, held: Held<T>): void {
    if (this.#held.get(key) !== held) return;
    if (held.opened?.isOpen === false) return this.#close(key);
    held.idle = new AbortController();
    const close = (): void => {
      if (this.#held.get(key) === held) this.#close(key);
    };
    this.#clock.sleep(this.#limits.idleMs, held.idle.signal).then(close, () => undefined);
  }

  /** The place is free at once; the server hears of it later. */
  #close(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#forget(key, held);
    if (held.opened !== undefined) void dispose(held.opened);
  }

  #forget(key: string, held: Held<T>): void {
    if (this.#held.get(key) === held) this.#held.delete(key);
    held.idle.abort();
  }
}

function notOpened(): TemperError {
  return new TemperError('TEMPER_MCP_SERVER_FAILED', 'the call ended before the MCP server had opened a session');
}

/** The unused sessions of the namespace that has most of them. */
function ofLargestNamespace<T>(held: readonly Entry<T>[]): readonly Entry<T>[] {
  const unused = held.filter(([, { calls }]) => calls === 0);
  const groups = Map.groupBy(unused, ([, { owner }]) => owner.namespace);
  return [...groups.values()].sort((a, b) => b.length - a.length)[0] ?? [];
}

/** The session is gone for Temper, whatever the server says about its end. */
async function dispose(session: AsyncDisposable): Promise<void> {
  try {
    await session[Symbol.asyncDispose]();
  } catch {
    // Nothing is left to do with it.
  }
}
