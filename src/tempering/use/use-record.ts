import type { Digest } from '../../lib/canonical.ts';
import type { ToolStatistics, ToolUse } from '../types.ts';

/** Maximum number of stored inputs per tool, and their maximum size. */
export const MAX_STORED_INPUTS = 50;
export const MAX_INPUT_BYTES = 32 * 1024;
const MAX_DISTINCT = 200;
const RECENT_USES = 20;

/** Use statistics of one digest in one namespace. Its size is bounded, independent of the number of uses. */
export interface UseRecord {
  digest: Digest;
  namespace: string;
  totalUses: number;
  successes: number;
  reportedUses: number;
  averageMilliseconds: number;
  lastUsedAt: string;
  /** Distinct values, up to 200 each. */
  inputs: string[];
  roots: string[];
  agents: string[];
  /** Outcome of the last 20 uses, oldest first: `+` or `-`. */
  recent: string;
  kept: KeptInput[];
}

interface KeptInput {
  digest: Digest;
  root: string;
}

/** One use with the digests computed from it. */
export interface CountedUse {
  use: ToolUse;
  inputDigest: Digest;
  root: string;
  /** Whether the input can be stored: within the size limit and with a canonical JSON form. */
  isStorable: boolean;
}

export interface UseEffect {
  record: UseRecord;
  store: boolean;
  evict?: Digest;
}

export function emptyUseRecord(digest: Digest, namespace: string): UseRecord {
  return {
    digest,
    namespace,
    totalUses: 0,
    successes: 0,
    reportedUses: 0,
    averageMilliseconds: 0,
    lastUsedAt: '',
    inputs: [],
    roots: [],
    agents: [],
    recent: '',
    kept: [],
  };
}

export function countUse(record: UseRecord, counted: CountedUse): UseEffect {
  const { use, inputDigest, root } = counted;
  const isNew = counted.isStorable && !record.kept.some(({ digest }) => digest === inputDigest);
  const evicted = isNew && record.kept.length >= MAX_STORED_INPUTS ? mostRedundant(record.kept, root) : undefined;
  const store = isNew && (record.kept.length < MAX_STORED_INPUTS || evicted !== undefined);
  const kept = store ? [...record.kept.filter((item) => item !== evicted), { digest: inputDigest, root }] : record.kept;
  const next: UseRecord = {
    ...record,
    totalUses: record.totalUses + 1,
    successes: record.successes + (use.succeeded ? 1 : 0),
    reportedUses: record.reportedUses + (use.evidence === 'reported' ? 1 : 0),
    averageMilliseconds: (record.averageMilliseconds * record.totalUses + use.milliseconds) / (record.totalUses + 1),
    lastUsedAt: use.time > record.lastUsedAt ? use.time : record.lastUsedAt,
    inputs: addDistinct(record.inputs, inputDigest),
    roots: addDistinct(record.roots, root),
    agents: addDistinct(record.agents, use.agent),
    recent: `${record.recent}${use.succeeded ? '+' : '-'}`.slice(-RECENT_USES),
    kept,
  };
  return { record: next, store, ...(evicted === undefined ? {} : { evict: evicted.digest }) };
}

/**
 * The oldest input of the root message with the most stored inputs, so that the stored inputs cover as many messages as possible.
 * Undefined when the new input belongs to the same message: one message cannot evict the inputs of others.
 */
function mostRedundant(kept: readonly KeptInput[], newRoot: string): KeptInput | undefined {
  const counts = new Map<string, number>();
  for (const { root } of kept) counts.set(root, (counts.get(root) ?? 0) + 1);
  let candidate: KeptInput | undefined;
  for (const item of kept) {
    if (candidate === undefined || (counts.get(item.root) ?? 0) > (counts.get(candidate.root) ?? 0)) candidate = item;
  }
  return candidate === undefined || candidate.root === newRoot || (counts.get(candidate.root) ?? 0) < 2
    ? undefined
    : candidate;
}

function addDistinct(list: string[], item: string): string[] {
  return list.includes(item) || list.length >= MAX_DISTINCT ? list : [...list, item];
}

export function statisticsOf(record: UseRecord): ToolStatistics {
  const { totalUses, successes } = record;
  return {
    totalUses,
    successes,
    failures: totalUses - successes,
    reportedUses: record.reportedUses,
    distinctInputs: record.inputs.length,
    rootMessages: record.roots.length,
    agents: record.agents.length,
    averageMilliseconds: record.averageMilliseconds,
    successRate: totalUses === 0 ? 0 : successes / totalUses,
    recent: { uses: record.recent.length, failures: record.recent.split('-').length - 1 },
    ...(record.lastUsedAt === '' ? {} : { lastUsedAt: record.lastUsedAt }),
  };
}
