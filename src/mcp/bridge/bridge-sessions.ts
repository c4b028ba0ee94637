import { randomUUID } from 'node:crypto';
import { SingleFlight } from '../../lib/async/single-flight.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { PipedProcess } from '../../sandbox/confined/piped-process.ts';
import { BridgeProcess } from './bridge-process.ts';
import { BridgeSession } from './bridge-session.ts';

export interface BridgeSessionsDeps {
  /** Starts a process. `number` is less than `max`, and no other process that runs has it. */
  start(number: number): Promise<PipedProcess>;
  /** Processes at the same time. */
  max: number;
  clock: Clock;
  /** Called when a process has ended, with the reason and none of its output. */
  onEnded(reason: string): void;
}

/** Whose session it is. */
export interface BridgedSession {
  /** Of the agent. */
  namespace: string;
  /** Names the session of the agent: its sessions at all gateways share a process. Absent: the session shares its process with no other. */
  key?: string | undefined;
}

interface Place {
  readonly key: string;
  readonly namespace: string;
  readonly process: BridgeProcess;
  readonly number: number;
  readonly sessions: Map<string, Held>;
}

interface Held {
  readonly session: BridgeSession;
  /** Of the last request, in milliseconds of the monotonic clock. */
  usedAt: number;
}

/** A gateway closes its sessions earlier; one that was killed does not. */
const IDLE_MS = 600_000;
const SWEEP_MS = 30_000;
/** Each gateway has one, and those that were killed left one. */
const MAX_SESSIONS_OF_PROCESS = 64;

/**
 * The sessions of one MCP server. Those with the same key share a process; it ends with the last of them. When all places for processes are
 * taken, the namespace with most of them loses the one without a request that was used longest ago.
 */
export class BridgeSessions implements AsyncDisposable {
  readonly #deps: BridgeSessionsDeps;
  /** By the key of the session of the agent. */
  readonly #places = new Map<string, Place>();
  /** By the ID of the MCP session. */
  readonly #placeOf = new Map<string, Place>();
  readonly #opening = new SingleFlight<Place | undefined>();
  readonly #free: number[];
  readonly #stopped = new AbortController();
  readonly #ending = new Set<Promise<void>>();

  constructor(deps: BridgeSessionsDeps) {
    this.#deps = deps;
    this.#free = Array.from({ length: deps.max }, (_, number) => number);
    void this.#sweep();
  }

  /** A new session, with a process that is started when none has the key. Undefined when every place is in use. Throws what the start throws. */
  async open({
    namespace,
    key = randomUUID(),
  }: BridgedSession): Promise<{ id: string; session: BridgeSession } | undefined> {
    const placeKey = JSON.stringify([namespace, key]);
    const place = await this.#opening.run(placeKey, () => this.#usablePlace(placeKey, namespace));
    if (place === undefined || !this.#canAdd(place)) return undefined;
    const id = randomUUID();
    const session = new BridgeSession(place.process);
    place.sessions.set(id, { session, usedAt: this.#deps.clock.monotonic() });
    this.#placeOf.set(id, place);
    if (this.#stopped.signal.aborted) await this.#end(place);
    return { id, session };
  }

  /** The session, which counts as used now; undefined when it has ended. */
  find(id: string): BridgeSession | undefined {
    const place = this.#placeOf.get(id);
    const held = place?.sessions.get(id);
    if (place === undefined || held === undefined) return undefined;
    if (this.#hasEnded(place)) return undefined;
    held.usedAt = this.#deps.clock.monotonic();
    return held.session;
  }

  /** Ends the session, and its process when it was the last one. The place is free when the home of the process is gone. */
  async close(id: string): Promise<void> {
    const place = this.#placeOf.get(id);
    if (place === undefined) return;
    this.#placeOf.delete(id);
    place.sessions.get(id)?.session[Symbol.dispose]();
    place.sessions.delete(id);
    if (place.sessions.size === 0) await this.#end(place);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    for (const place of this.#places.values()) void this.#end(place);
    await Promise.allSettled(this.#ending);
  }

  async #usablePlace(key: string, namespace: string): Promise<Place | undefined> {
    const known = this.#places.get(key);
    if (known !== undefined && !this.#hasEnded(known)) return known;
    if (this.#stopped.signal.aborted) return undefined;
    if (this.#free.length === 0) await this.#displace();
    const number = this.#free.pop();
    if (number === undefined) return undefined;
    try {
      const process = await BridgeProcess.open(await this.#deps.start(number), this.#deps.clock);
      const place: Place = { key, namespace, process, number, sessions: new Map() };
      this.#places.set(key, place);
      return place;
    } catch (error) {
      this.#free.push(number);
      throw error;
    }
  }

  /** Closes the session without a request that was used longest ago when there are too many: its client has left it. */
  #canAdd({ sessions }: Place): boolean {
    if (sessions.size < MAX_SESSIONS_OF_PROCESS) return true;
    const [oldest] = [...sessions]
      .filter(([, { session }]) => !session.isBusy)
      .sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest !== undefined) void this.close(oldest[0]);
    return oldest !== undefined;
  }

  /** Ends what is left of a place whose process has ended. */
  #hasEnded(place: Place): boolean {
    const { ended } = place.process;
    if (ended === undefined) return false;
    this.#deps.onEnded(ended);
    void this.#end(place);
    return true;
  }

  async #end(place: Place): Promise<void> {
    if (this.#places.get(place.key) !== place) return;
    this.#places.delete(place.key);
    for (const id of place.sessions.keys()) this.#placeOf.delete(id);
    const ending = this.#release(place).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    await ending;
  }

  async #release({ process, number }: Place): Promise<void> {
    try {
      await process[Symbol.asyncDispose]();
      this.#free.push(number);
    } catch (error) {
      // A home that cannot be removed is given to no other session.
      this.#deps.onEnded(`its home cannot be removed: ${messageOf(error, 200)}`);
    }
  }

  async #displace(): Promise<void> {
    const places = [...this.#places.values()];
    const groups = Map.groupBy(places, ({ namespace }) => namespace);
    const sizeOf = ({ namespace }: Place): number => groups.get(namespace)?.length ?? 0;
    const [first] = places.filter(isUnused).sort((a, b) => sizeOf(b) - sizeOf(a) || lastUse(a) - lastUse(b));
    if (first !== undefined) await this.#end(first);
  }

  async #sweep(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#stopped.signal.aborted) {
      await clock.sleep(SWEEP_MS, this.#stopped.signal).catch(() => undefined);
      const before = clock.monotonic() - IDLE_MS;
      for (const place of this.#places.values()) {
        if (this.#hasEnded(place)) continue;
        for (const [id, { session, usedAt }] of place.sessions)
          if (usedAt < before && !session.isBusy) void this.close(id);
      }
    }
  }
}

/** A process without a session has just been started for one. */
function isUnused({ sessions }: Place): boolean {
  return sessions.size > 0 && [...sessions.values()].every(({ session }) => !session.isBusy);
}

function lastUse({ sessions }: Place): number {
  return Math.max(...[...sessions.values()].map(({ usedAt }) => usedAt));
}
