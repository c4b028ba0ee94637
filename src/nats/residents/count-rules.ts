import type { CountedStore } from './resident.ts';

/** What a process knows of the bytes of an agent in a store. */
export interface Count {
  bytes: number;
  /** The part of the bytes that this process added since it counted. */
  added: number;
  /** Monotonic milliseconds; before the first count minus infinity. */
  countedAt: number;
  /** The bytes in the entry of the agent. */
  written: number;
}

/** When a store is counted again. */
interface CountRule {
  /** An agent that is not known yet is taken for empty instead of being counted. */
  startsEmpty: boolean;
  isCurrent(count: Count, now: number): boolean;
  /** Whether to count again before an agent is refused. */
  mayRecount(count: Count, now: number): boolean;
  /** What was added may have left the store already, so only counted bytes are written to the entry. */
  writesOnlyCounted: boolean;
  /** The entry of an agent is written when its bytes differ by this; the sum of a namespace lacks at most as much of each agent. */
  stepBytes: number;
}

/** A count by another gateway is taken over after this time at the latest. */
const COUNT_TTL_MS = 60_000;
const STEP_BYTES = 256 * 1_024;
const INBOX_STEP_BYTES = 1_024 * 1_024;
/** Counting a full inbox reads it. */
const INBOX_RECOUNT_MS = 10_000;

const BY_TIME: CountRule = {
  startsEmpty: false,
  isCurrent: ({ countedAt }, now) => now - countedAt < COUNT_TTL_MS,
  mayRecount: () => true,
  writesOnlyCounted: false,
  stepBytes: STEP_BYTES,
};

/** Small, and of many agents: their bucket shares its stream with the states of the operator. */
const IN_SMALL_STEPS: CountRule = { ...BY_TIME, stepBytes: 16 * 1_024 };

/** Messages leave the inbox unseen, so it is counted after as much was added, and not by time: without traffic it costs nothing. */
const BY_ADDED_BYTES: CountRule = {
  startsEmpty: true,
  isCurrent: ({ bytes, added }) => added < Math.max(INBOX_STEP_BYTES, (bytes - added) / 2),
  mayRecount: ({ countedAt }, now) => now - countedAt >= INBOX_RECOUNT_MS,
  writesOnlyCounted: true,
  stepBytes: STEP_BYTES,
};

export const COUNT_RULES: Readonly<Record<CountedStore, CountRule>> = {
  sessions: BY_TIME,
  sessionTools: BY_TIME,
  sources: BY_TIME,
  memory: BY_TIME,
  evidence: BY_TIME,
  inbox: BY_ADDED_BYTES,
  tasks: BY_TIME,
  requests: IN_SMALL_STEPS,
};
