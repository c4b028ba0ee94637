import { type UsageEntry, usageOfCall, UsageTable } from '../../ledger/usage/usage-entry.ts';
import { dayOf } from '../../ledger/usage/usage-groups.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { ModelCaller } from '../../models/pipeline.ts';
import { readUsageDay, trimUsageDays, type LocalUsageKind, type UsageOfDay, writeUsageDay } from './usage-days.ts';

/** Agents, models and root messages of one team and day; what exceeds it is not recorded. */
const MAX_ENTRIES = 1_000;
const FLUSH_INTERVAL_MS = 5_000;

export interface LocalUsageDeps {
  readonly records: RecordStore;
  readonly clock: Clock;
}

/** The agent that is charged, and the agent without a parent above it. */
export interface ChargedAgent {
  readonly name: string;
  readonly namespace: string;
  readonly team: string;
}

/** What was charged on one day and is not stored yet. */
interface OpenDay {
  readonly namespace: string;
  readonly day: string;
  readonly teams: Map<string, UsageTable>;
  readonly roots: Map<string, UsageTable>;
}

/**
 * Records what calls of models were charged, by agent, model and day. It is stored every few seconds, and a process that is killed loses
 * what it recorded last: quotas do not depend on it.
 */
export class LocalUsage implements AsyncDisposable {
  readonly #deps: LocalUsageDeps;
  readonly #open = new Map<string, OpenDay>();
  readonly #closing = new AbortController();
  readonly #flushing: Promise<void>;
  #failure: { error: unknown } | undefined;

  constructor(deps: LocalUsageDeps) {
    this.#deps = deps;
    this.#flushing = this.#flushRegularly();
  }

  /** For the calls of this agent; `rootOf` finds the root message of a call by its key. Never throws. */
  of(
    { name, namespace, team }: ChargedAgent,
    rootOf: (key: string) => string | undefined = () => undefined,
  ): NonNullable<ModelCaller['onCharged']> {
    return (model, used, key) => {
      const { teams, roots } = this.#today(namespace);
      const entry = usageOfCall(name, model, used);
      tableOf(teams, team).add(entry);
      const root = rootOf(key);
      if (root !== undefined) tableOf(roots, team).add({ ...entry, root });
    };
  }

  /** Adds what was recorded to what is stored of the same day. */
  async flush(): Promise<void> {
    const days = [...this.#open.values()];
    // What is charged during the writes belongs to the next ones.
    this.#open.clear();
    for (const day of days) await this.#store(day);
  }

  /** Throws when usage could not be stored. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#flushing;
    await this.flush();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #today(namespace: string): OpenDay {
    const day = dayOf(this.#deps.clock.now());
    const key = `${namespace}/${day}`;
    const open: OpenDay = this.#open.get(key) ?? { namespace, day, teams: new Map(), roots: new Map() };
    this.#open.set(key, open);
    return open;
  }

  async #store({ namespace, day, teams, roots }: OpenDay): Promise<void> {
    const { records } = this.#deps;
    const stored = await readUsageDay(records, namespace, day);
    const usage = { teams: sumOf(stored.teams, teams), roots: sumOf(stored.roots, roots) };
    await writeUsageDay(records, namespace, day, usage);
    if (stored.teams.size === 0) await trimUsageDays(records, namespace);
  }

  /** A write that fails ends the recording: the folder cannot be written, which the process reports at its end. */
  async #flushRegularly(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#failure === undefined) {
      await this.#deps.clock.sleep(FLUSH_INTERVAL_MS, signal).catch(() => undefined);
      if (!signal.aborted) {
        await this.flush().catch((error: unknown) => {
          this.#failure = { error };
        });
      }
    }
  }
}

function tableOf(tables: Map<string, UsageTable>, team: string): UsageTable {
  const table = tables.get(team) ?? new UsageTable(MAX_ENTRIES);
  tables.set(team, table);
  return table;
}

function sumOf(
  stored: UsageOfDay[LocalUsageKind],
  teams: ReadonlyMap<string, UsageTable>,
): ReadonlyMap<string, readonly UsageEntry[]> {
  const names = new Set([...stored.keys(), ...teams.keys()]);
  return new Map(
    [...names].map((team): [string, UsageEntry[]] => {
      const sum = new UsageTable(MAX_ENTRIES);
      for (const entry of [...(stored.get(team) ?? []), ...(teams.get(team)?.list() ?? [])]) sum.add(entry);
      return [team, sum.list()];
    }),
  );
}
