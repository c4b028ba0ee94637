import { type DatedUsage, parseUsage, type UsageEntry, usageJson } from '../../ledger/usage/usage-entry.ts';
import { isJsonObject, type Json, member } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';

/** Days of usage that a state folder keeps. */
const MAX_USAGE_DAYS = 180;
const DAY = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/;

/** `teams`: sums of agents and models; `roots`: sums of the same calls with their root messages. */
export type LocalUsageKind = 'teams' | 'roots';
/** The usage of one day, by team. */
export type UsageOfDay = Readonly<Record<LocalUsageKind, ReadonlyMap<string, readonly UsageEntry[]>>>;

const collectionOf = (namespace: string): string => `usage/${namespace}`;

export async function readUsageDay(records: RecordStore, namespace: string, day: string): Promise<UsageOfDay> {
  return parseDay(await records.get(collectionOf(namespace), day));
}

export async function writeUsageDay(
  records: RecordStore,
  namespace: string,
  day: string,
  usage: UsageOfDay,
): Promise<void> {
  const stored = (kind: LocalUsageKind) =>
    [...usage[kind]].map(([team, entries]) => ({ team, entries: usageJson(entries) }));
  await records.put(collectionOf(namespace), day, {
    teams: stored('teams'),
    roots: stored('roots'),
  } as unknown as Json);
}

/** Deletes the oldest days beyond those that a state folder keeps. */
export async function trimUsageDays(records: RecordStore, namespace: string): Promise<void> {
  const days = (await records.list(collectionOf(namespace))).map(({ name }) => name).sort();
  for (const day of days.slice(0, Math.max(0, days.length - MAX_USAGE_DAYS)))
    await records.delete(collectionOf(namespace), day);
}

/** What the agents of a namespace used from this day on. What is no usage is left out. */
export async function usageSince(
  records: RecordStore,
  namespace: string,
  since: string,
  kind: LocalUsageKind = 'teams',
): Promise<DatedUsage[]> {
  const stored = await records.list(collectionOf(namespace));
  return stored
    .filter(({ name }) => DAY.test(name) && name >= since)
    .flatMap(({ name: day, value }) =>
      [...parseDay(value)[kind]].flatMap(([team, entries]) => entries.map((entry) => ({ ...entry, day, team }))),
    );
}

function parseDay(value: Json | undefined): UsageOfDay {
  return { teams: parseTeams(member(value, 'teams')), roots: parseTeams(member(value, 'roots')) };
}

function parseTeams(value: Json | undefined): UsageOfDay[LocalUsageKind] {
  return new Map(
    (Array.isArray(value) ? value : []).flatMap((stored): [string, UsageEntry[]][] =>
      isJsonObject(stored) && typeof stored['team'] === 'string'
        ? [[stored['team'], parseUsage(stored['entries'])]]
        : [],
    ),
  );
}
