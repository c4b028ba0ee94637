import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { streamFill } from '../jetstream/stream-reader.ts';
import { countBytes, streamOf } from './byte-count.ts';
import { type Count, COUNT_RULES } from './count-rules.ts';
import { NamespaceBytes } from './namespace-bytes.ts';
import { type CountedStore, COUNTED_STORES, type ResidentAgent } from './resident.ts';
import { createResidents, type Residents } from './residents.ts';
import { STORE_NAMES, type StorageLimits, storageLimitExceeded } from './storage-limits.ts';

export interface StorageQuotaDeps {
  connection: JetStreamConnection;
  limits: StorageLimits;
  /** The release of this process. */
  release: string;
  /** The Agent with this UID; undefined when it does not exist. */
  identify: (agentUid: string) => ResidentAgent | undefined;
}

/** The bytes of one agent, before they are stored. */
export interface AgentQuota {
  limits: StorageLimits;
  /** Counts bytes that are about to be stored. Throws TEMPER_STORAGE_LIMIT_EXCEEDED, or TEMPER_NOT_FOUND for a deleted agent. */
  reserve(store: CountedStore, bytes: number): Promise<void>;
  /** Gives back bytes that were not stored, or that a smaller value replaced. */
  release(store: CountedStore, bytes: number): void;
  /** Counts again, after data was deleted. */
  recount(store: CountedStore): Promise<void>;
}

const STREAM_FILL_TTL_MS = 60_000;
/** Before a namespace is refused, so that what others deleted counts. */
const STREAM_RECHECK_MS = 1_000;
const MAX_CACHED = 20_000;
/** Agents that are counted again before a namespace is refused: deletions by age change no entry. */
const RECOUNTED = 10;

/**
 * Bytes of agents and namespaces in NATS, and the entry of each agent that stores something. A process adds what it stores to its own
 * count, and counts again every minute: two gateways together may exceed a limit by what they accept within that minute.
 */
export class StorageQuota {
  readonly #deps: StorageQuotaDeps;
  readonly #residents: Residents;
  readonly #namespaces: NamespaceBytes;
  readonly #counts = new LRUCache<string, Count>(entries(MAX_CACHED * COUNTED_STORES.length));
  /** The start of the connection on which the entry of an agent was written. */
  readonly #known = new LRUCache<string, number>(entries(MAX_CACHED));
  /** With what this process added since it was read. */
  readonly #fills = new Map<string, { maxBytes: number; bytes: number; readAt: number }>();

  constructor(deps: StorageQuotaDeps) {
    this.#deps = deps;
    this.#residents = createResidents(deps.connection);
    this.#namespaces = new NamespaceBytes(this.#residents, deps.connection.clock);
  }

  of(agentUid: string): AgentQuota {
    return {
      limits: this.#deps.limits,
      reserve: (store, bytes) => this.#reserve(agentUid, store, bytes),
      release: (store, bytes) => this.#add(agentUid, store, -bytes),
      recount: async (store) => {
        const agent = this.#deps.identify(agentUid);
        if (agent !== undefined) await this.#count(agent, store);
      },
    };
  }

  /** Writes the entry of the agent unless this process knows that it exists. Throws TEMPER_NOT_FOUND for a deleted agent. */
  async ensureResident(agentUid: string): Promise<ResidentAgent> {
    const agent = this.#deps.identify(agentUid);
    if (agent === undefined) throw new TemperError('TEMPER_NOT_FOUND', 'the agent does not exist any more');
    // A lost store has lost the entries too. It cannot be lost without a new connection.
    const generation = this.#deps.connection.state().since.getTime();
    if (this.#known.get(agentUid) === generation) return agent;
    await this.#residents.ensure(agent, this.#deps.release);
    this.#known.set(agentUid, generation);
    return agent;
  }

  async #reserve(agentUid: string, store: CountedStore, bytes: number): Promise<void> {
    const agent = await this.ensureResident(agentUid);
    const limit = this.#deps.limits.agentBytes[store];
    let count = await this.#current(agent, store);
    if (count.bytes + bytes > limit && COUNT_RULES[store].mayRecount(count, this.#now()))
      count = await this.#count(agent, store);
    await this.#assertNamespace(agent, store, bytes);
    if (count.bytes + bytes > limit) {
      const what = `the ${STORE_NAMES[store]} of agent "${agent.name}"`;
      throw storageLimitExceeded(what, count.bytes + bytes, limit, FIXES[store]);
    }
    this.#add(agentUid, store, bytes);
    if (!COUNT_RULES[store].writesOnlyCounted && isWritten(store, count)) await this.#write(agent, store, count);
  }

  #now(): number {
    return this.#deps.connection.clock.monotonic();
  }

  async #assertNamespace(agent: ResidentAgent, store: CountedStore, bytes: number): Promise<void> {
    const { namespace } = agent;
    const before = await this.#namespaces.bytes(namespace, store);
    if (before + bytes <= (await this.#namespaceLimit(store, before, STREAM_FILL_TTL_MS))) return;
    for (const { resident } of await this.#namespaces.largest(namespace, store, RECOUNTED)) {
      await this.#count(resident, store);
    }
    const sum = await this.#namespaces.bytes(namespace, store);
    const limit = await this.#namespaceLimit(store, sum, STREAM_RECHECK_MS);
    if (sum + bytes <= limit) return;
    const what = `the ${STORE_NAMES[store]} of all agents in namespace ${namespace}`;
    throw storageLimitExceeded(what, sum + bytes, limit, `${FIXES[store]}, also of other agents of the namespace`);
  }

  /**
   * The share of a namespace is a part of what the other namespaces leave free, so however many of them take what they may, a part is left
   * for the next one.
   */
  async #namespaceLimit(store: CountedStore, ofNamespace: number, maxAgeMs: number): Promise<number> {
    const { maxBytes, bytes } = await this.#fill(store, maxAgeMs);
    const ofOthers = Math.max(0, bytes - ofNamespace);
    return Math.floor((Math.max(0, maxBytes - ofOthers) * this.#deps.limits.namespacePercent) / 100);
  }

  async #current(agent: ResidentAgent, store: CountedStore): Promise<Count> {
    const key = `${store}/${agent.uid}`;
    const known = this.#counts.get(key);
    if (known === undefined && COUNT_RULES[store].startsEmpty) {
      const empty: Count = { bytes: 0, added: 0, countedAt: Number.NEGATIVE_INFINITY, written: 0 };
      this.#counts.set(key, empty);
      return empty;
    }
    return known !== undefined && COUNT_RULES[store].isCurrent(known, this.#now()) ? known : this.#count(agent, store);
  }

  async #count(agent: ResidentAgent, store: CountedStore): Promise<Count> {
    const { connection, limits } = this.#deps;
    const bytes = await countBytes(connection, store, agent.uid, 2 * limits.agentBytes[store]);
    const key = `${store}/${agent.uid}`;
    const count: Count = {
      bytes,
      added: 0,
      countedAt: this.#now(),
      written: this.#counts.get(key)?.written ?? 0,
    };
    this.#counts.set(key, count);
    if (isWritten(store, count) || bytes === 0) await this.#write(agent, store, count);
    return count;
  }

  async #write(agent: ResidentAgent, store: CountedStore, count: Count): Promise<void> {
    const { bytes } = count;
    let before = bytes;
    await this.#residents.update(agent, (entry) => {
      before = entry.bytes[store];
      return before === bytes ? undefined : { ...entry, bytes: { ...entry.bytes, [store]: bytes } };
    });
    this.#namespaces.add(agent.namespace, store, bytes - before);
    count.written = bytes;
  }

  #add(agentUid: string, store: CountedStore, bytes: number): void {
    const count = this.#counts.get(`${store}/${agentUid}`);
    if (count === undefined) return;
    count.bytes = Math.max(0, count.bytes + bytes);
    count.added = Math.max(0, count.added + bytes);
    const fill = this.#fills.get(streamOf(store));
    if (fill !== undefined) fill.bytes = Math.max(0, fill.bytes + bytes);
  }

  async #fill(store: CountedStore, maxAgeMs: number): Promise<{ maxBytes: number; bytes: number }> {
    const stream = streamOf(store);
    const readAt = this.#now();
    const known = this.#fills.get(stream);
    if (known !== undefined && readAt - known.readAt < maxAgeMs) return known;
    const fill = { ...(await streamFill(this.#deps.connection, stream)), readAt };
    this.#fills.set(stream, fill);
    return fill;
  }
}

/** Whether the entry of the agent is written with this count. */
function isWritten(store: CountedStore, { bytes, written }: Count): boolean {
  return Math.abs(bytes - written) >= COUNT_RULES[store].stepBytes;
}

const FIXES: Record<CountedStore, string> = {
  sessions: 'close sessions that are not needed',
  sessionTools: 'close sessions whose tools are not needed',
  sources: 'drop tools that are not needed',
  memory: 'delete keys that are not needed',
  tasks: 'delete agents that are not needed',
  evidence: 'wait until older inputs expire',
  requests: 'decide the open approval requests, or wait until the operator has started the requested children',
  inbox: 'send again when the agent has processed waiting messages',
};
