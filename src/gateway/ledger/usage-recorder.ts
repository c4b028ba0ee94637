import { type UsageEntry, usageOfCall, UsageTable } from '../../ledger/usage/usage-entry.ts';
import type { Amounts } from '../../ledger/port.ts';
import { dayOf } from '../../ledger/usage/usage-groups.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { ResolvedModel } from '../../models/pipeline.ts';
import { MAX_PART_ENTRIES, type UsageKind, type UsagePart, type UsageParts } from '../../nats/tasks/usage-parts.ts';
import type { AgentState } from '../agent-state.ts';
import { mapInBatches } from '../concurrency-limit.ts';

export interface UsageRecorderDeps {
  parts: Pick<UsageParts, 'write'>;
  clock: Clock;
  ids: IdGenerator;
  onError: (error: unknown) => void;
}

/** Records what calls were charged, by agent, model, root message and day. */
export interface UsageRecorder extends AsyncDisposable {
  /** For calls of this agent, in the chain of this root message. Never throws. */
  of(state: AgentState, root: string | undefined): (model: ResolvedModel, used: Amounts) => void;
  /** Stores what was recorded. */
  flush(): Promise<void>;
}

const FLUSH_INTERVAL_MS = 5_000;
/** A part that got nothing for this time is left; the next call starts another one. */
const IDLE_MS = 600_000;
/** While NATS is unavailable. What exceeds it is not recorded. */
const MAX_OPEN_PARTS = 10_000;

interface OpenPart extends UsagePart {
  readonly table: UsageTable;
  storedBytes: number;
  isChanged: boolean;
  usedAt: number;
}

/**
 * Each process has parts of its own, so writing them needs no comparison and repeating a write changes nothing. What a process that is
 * killed recorded last is missing: quotas do not depend on it.
 */
export function createUsageRecorder(deps: UsageRecorderDeps): UsageRecorder {
  return new PartRecorder(deps);
}

class PartRecorder implements UsageRecorder {
  readonly #deps: UsageRecorderDeps;
  /** The part of each team, kind and day that takes entries. */
  readonly #open = new Map<string, OpenPart>();
  /** Parts that are full, until they are stored. */
  readonly #full = new Set<OpenPart>();
  readonly #closing = new AbortController();
  readonly #flushing: Promise<void>;
  #storing: Promise<void> = Promise.resolve();

  constructor(deps: UsageRecorderDeps) {
    this.#deps = deps;
    this.#flushing = this.#flushRegularly();
  }

  of(state: AgentState, root: string | undefined): (model: ResolvedModel, used: Amounts) => void {
    const team = state.ancestors.at(-1) ?? state;
    const agent = state.agent.metadata.name;
    return (model, used) => {
      const entry = usageOfCall(agent, model, used);
      this.#add(team.uid, 'days', entry);
      if (root !== undefined) this.#add(team.uid, 'roots', { ...entry, root });
    };
  }

  flush(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#store());
    return this.#storing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#flushing;
    await this.flush();
  }

  #add(teamUid: string, kind: UsageKind, entry: UsageEntry): void {
    const day = dayOf(this.#deps.clock.now());
    const key = `${teamUid}/${kind}/${day}`;
    const known = this.#open.get(key);
    if (known !== undefined && this.#take(known, entry)) return;
    if (this.#open.size + this.#full.size >= MAX_OPEN_PARTS) return;
    if (known !== undefined) this.#full.add(known);
    const id = this.#deps.ids.next('usage');
    const table = new UsageTable(MAX_PART_ENTRIES);
    const part = { teamUid, kind, day, id, table, storedBytes: 0, isChanged: false, usedAt: 0 };
    this.#take(part, entry);
    this.#open.set(key, part);
  }

  #take(part: OpenPart, entry: UsageEntry): boolean {
    if (!part.table.add(entry)) return false;
    part.isChanged = true;
    part.usedAt = this.#deps.clock.monotonic();
    return true;
  }

  async #store(): Promise<void> {
    const parts = [...this.#full, ...this.#open.values()];
    await mapInBatches(
      parts.filter(({ isChanged }) => isChanged),
      (part) => this.#write(part),
    );
    for (const part of this.#full) if (!part.isChanged) this.#full.delete(part);
    const now = this.#deps.clock.monotonic();
    for (const [key, part] of this.#open) if (!part.isChanged && now - part.usedAt >= IDLE_MS) this.#open.delete(key);
  }

  async #write(part: OpenPart): Promise<void> {
    // Before the entries are read: what arrives during the write makes the part changed again.
    part.isChanged = false;
    try {
      part.storedBytes = await this.#deps.parts.write(part, part.table.list(), part.storedBytes);
    } catch (error) {
      // A deleted agent, or one without space for records, has no further usage. Other errors end by themselves.
      const isFinal = isTemperError(error, 'TEMPER_NOT_FOUND') || isTemperError(error, 'TEMPER_STORAGE_LIMIT_EXCEEDED');
      if (isFinal) return;
      part.isChanged = true;
      this.#deps.onError(error);
    }
  }

  async #flushRegularly(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#deps.clock.sleep(FLUSH_INTERVAL_MS, signal).catch(() => undefined);
      if (!signal.aborted) await this.flush();
    }
  }
}
