import { isJsonObject, type Json } from '../../lib/json.ts';

/** The release of an installation that names none. */
export const DEFAULT_RELEASE = 'temper';

/** What is counted in bytes per agent: buckets, and the messages that wait for the agent. */
export const COUNTED_STORES = [
  'sessions',
  'sessionTools',
  'sources',
  'memory',
  'evidence',
  'inbox',
  'tasks',
  'requests',
] as const;
export type CountedStore = (typeof COUNTED_STORES)[number];
export type StoredBytes = Record<CountedStore, number>;

/** An Agent as the entry of its data names it. */
export interface ResidentAgent {
  namespace: string;
  name: string;
  uid: string;
}

/** The entry of an agent with stored data. The process that first stores something for the agent writes it before. */
export interface Resident extends ResidentAgent {
  /** The release whose agent it is; only the operator of that release deletes the data. */
  release: string;
  /** RFC 3339: when the entry was written. */
  since: string;
  /** Bytes at the last count. */
  bytes: StoredBytes;
  /** RFC 3339: the first look of the operator at which the Agent did not exist. */
  missingSince?: string | undefined;
}

export function noBytes(): StoredBytes {
  return { sessions: 0, sessionTools: 0, sources: 0, memory: 0, evidence: 0, inbox: 0, tasks: 0, requests: 0 };
}

export function newResident(agent: ResidentAgent, release: string, now: Date): Resident {
  const { namespace, name, uid } = agent;
  return {
    release,
    namespace,
    name,
    uid,
    since: now.toISOString(),
    bytes: noBytes(),
  };
}

/** Undefined for a value that is not a valid entry. */
export function parseResident(value: Json | undefined): Resident | undefined {
  if (!isJsonObject(value)) return undefined;
  const { release, namespace, name, uid, since, bytes, missingSince } = value;
  const texts = [release, namespace, name, uid, since];
  if (!texts.every((text) => typeof text === 'string')) return undefined;
  const counted = Object.fromEntries(COUNTED_STORES.map((store) => [store, bytesOf(bytes, store)])) as StoredBytes;
  const resident = { release, namespace, name, uid, since, bytes: counted } as Resident;
  const isMarked = typeof missingSince === 'string' && !Number.isNaN(Date.parse(missingSince));
  return isMarked ? { ...resident, missingSince } : resident;
}

function bytesOf(value: Json | undefined, store: CountedStore): number {
  const found = isJsonObject(value) ? value[store] : undefined;
  return typeof found === 'number' && Number.isSafeInteger(found) && found >= 0 ? found : 0;
}
