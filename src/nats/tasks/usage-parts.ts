import { type DatedUsage, parseUsage, type UsageEntry, usageJson } from '../../ledger/usage/usage-entry.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { keepLast, readMessages } from '../jetstream/stream-reader.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';

/** What the entries of a part are about: all messages of a day, or single root messages. */
const USAGE_KINDS = ['days', 'roots'] as const;
export type UsageKind = (typeof USAGE_KINDS)[number];

/** A document that one process writes again and again: the usage of one team on one day, or a part of that. */
export interface UsagePart {
  readonly teamUid: string;
  readonly kind: UsageKind;
  /** UTC, `2026-05-04`. */
  readonly day: string;
  /** Unique among all processes. */
  readonly id: string;
}

/** Entries of one part. With the newest parts of a team they stay below the limit of its records of tasks. */
export const MAX_PART_ENTRIES = 24;
const MAX_PARTS: Readonly<Record<UsageKind, number>> = { days: 100, roots: 50 };

const STREAM = bucketStream(BUCKETS.tasks);

/** Usage of teams, as records of the agent at the top. Methods throw TEMPER_BUS_*. */
export interface UsageParts {
  /**
   * Stores the part in place of its earlier version of `before` bytes, and returns its bytes. Throws TEMPER_STORAGE_LIMIT_EXCEEDED, and
   * TEMPER_NOT_FOUND for a deleted agent.
   */
  write(part: UsagePart, entries: readonly UsageEntry[], before: number): Promise<number>;
  /** The entries of the team from this day on; `team` is its name. */
  read(team: { uid: string; name: string }, kind: UsageKind, since: string): Promise<DatedUsage[]>;
}

export function createUsageParts(
  connection: JetStreamConnection,
  quotaOf: (agentUid: string) => Pick<AgentQuota, 'reserve'>,
): UsageParts {
  return {
    async write({ teamUid, kind, day, id }, entries, before) {
      const value: Json = usageJson(entries);
      const bytes = Buffer.byteLength(JSON.stringify(value));
      await quotaOf(teamUid).reserve('tasks', Math.max(0, bytes - before));
      await publish(connection, subject(teamUid, kind, `${token(day)}.${token(id)}`), value);
      if (before === 0) await keepLast(connection, STREAM, subject(teamUid, kind, '*.*'), MAX_PARTS[kind]);
      return bytes;
    },
    async read({ uid, name }, kind, since) {
      const found: DatedUsage[] = [];
      for await (const { subject: key, data } of readMessages(connection, STREAM, subject(uid, kind, '*.*'))) {
        const day = key.split('.').at(-2) ?? '';
        if (day < since) continue;
        found.push(...parseUsage(parseJsonBytes(data)).map((entry) => ({ ...entry, day, team: name })));
      }
      return found;
    },
  };
}

function subject(teamUid: string, kind: UsageKind, key: string): string {
  return bucketSubject(BUCKETS.tasks, `${token(teamUid)}.usage-${kind}.${key}`);
}

/** Whether a key of the bucket, such as `<agent>.end.<message>`, is a part of usage. */
export function isUsageKey(key: string): boolean {
  return key.split('.', 2)[1]?.startsWith('usage-') === true;
}
