import {
  baseOf,
  earlyRemoval,
  firstHead,
  type HeadKeys,
  linksOf,
  recordTime,
  type SignedHead,
  signHead,
  type StreamBounds,
  type StreamProblem,
  type StreamVerification,
  verifyStream,
} from '../../audit/stream-chain.ts';
import type { AuditStream } from '../../nats/audit-stream.ts';
import type { Clock } from '../../lib/clock.ts';
import { DayHeads } from './day-heads.ts';
import type { HeadStore } from './head-store.ts';

/** Interval of signed heads. */
export const HEAD_INTERVAL_MS = 60_000;
/** Interval of the verification of all stored records. In between only new records are read. */
const FULL_INTERVAL_MS = 24 * 3_600_000;
const DAY_MS = 24 * 3_600_000;

export interface AuditChainDeps {
  stream: AuditStream;
  heads: HeadStore;
  /** `isFirst`: nothing was signed yet. */
  keys(isFirst: boolean, signal: AbortSignal): Promise<HeadKeys>;
  clock: Clock;
}

export type AuditChainState = { intact: true; records: number } | { intact: false; problem: StreamProblem };

/**
 * The provenance chain of an installation. The leader computes it over the audit stream, whose server puts the records of all gateways
 * in one order, and stores signed heads outside the stream. Before each new head it compares the stream with the heads before.
 */
export class AuditChain {
  readonly #deps: AuditChainDeps;
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(deps: AuditChainDeps) {
    this.#deps = deps;
  }

  /** Verifies, then signs the new records. A stream with a problem gets no further head. */
  async round(signal: AbortSignal): Promise<AuditChainState> {
    const { stream, heads, clock } = this.#deps;
    // The heads first: a record after them is no problem, a head of a record that was not read yet would be.
    const stored = await heads.read(signal);
    const keys = await this.#deps.keys(stored === undefined, signal);
    const bounds = await stream.bounds();
    const isFull = clock.monotonic() - this.#fullAt >= FULL_INTERVAL_MS;
    const days = new DayHeads(stored?.heads.at(-1));
    const verification = await this.#verify(stored?.heads ?? [], bounds, isFull, keys, days);
    if (!verification.ok) return { intact: false, problem: verification.problem };
    if (isFull) this.#fullAt = clock.monotonic();
    const { head } = verification;
    if (head.sequence === stored?.heads.at(-1)?.sequence) return { intact: true, records: head.records };
    const time = clock.now().toISOString();
    const known = stored?.heads ?? [signHead(firstHead(bounds), { time }, keys)];
    const added = days.heads().map((day) => signHead(day.head, { time, recordedAt: day.recordedAt }, keys));
    const next = keptHeads([...known, ...added], bounds);
    await heads.write({ heads: next, publicKeys: keys.publicKeys }, stored, signal);
    return { intact: true, records: head.records };
  }

  async #verify(
    heads: readonly SignedHead[],
    bounds: StreamBounds,
    isFull: boolean,
    keys: HeadKeys,
    days: DayHeads,
  ): Promise<StreamVerification> {
    const problem = earlyRemoval(heads, bounds, this.#deps.clock.now());
    if (problem !== undefined) return { ok: false, problem };
    const last = heads.at(-1);
    const base = isFull ? (baseOf(heads, bounds) ?? last) : last;
    const start = base ?? firstHead(bounds);
    const links = linksOf(this.#deps.stream.read(start.sequence + 1, bounds.lastSequence));
    return verifyStream(start, heads, bounds, links, keys, (head, { time }) => days.add(head, time));
  }
}

/** The head from which all later records are still stored, one head per day of records, and the current head. */
export function keptHeads(heads: readonly SignedHead[], bounds: StreamBounds): SignedHead[] {
  const dayOf = (head: SignedHead): number => Math.floor(Date.parse(recordTime(head)) / DAY_MS);
  const kept = heads.filter((head, index) => {
    const next = heads[index + 1];
    return index === 0 || next === undefined || dayOf(next) !== dayOf(head);
  });
  const base = baseOf(kept, bounds);
  return base === undefined ? kept.slice(-1) : kept.slice(kept.indexOf(base));
}
