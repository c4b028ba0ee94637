import type { Digest } from '../lib/canonical.ts';
import type { ToolStatistics, ToolUse } from './types.ts';

/** Inputs kept for one tool, and the largest one kept. */
export const KEPT_INPUTS = 50;
export const KEPT_INPUT_BYTES = 32 * 1024;
const COUNTED = 200;
const RECENT = 20;

/** What is remembered of the uses of one digest in one namespace. Bounded however often it is used. */
export interface UseRecord {
  digest: Digest;
  namespace: string;
  totalUses: number;
  successes: number;
  claimedUses: number;
  averageMilliseconds: number;
  lastUsedAt: string;
  /** Distinct ones, up to 200 each. */
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

/** One use, with what had to be computed about it. */
export interface CountedUse {
  use: ToolUse;
  inputDigest: Digest;
  root: string;
  /** Small enough to be kept, and a value canonical JSON can say. */
  keepable: boolean;
}

export interface UseEffect {
  record: UseRecord;
  keep: boolean;
  evict?: Digest;
}

export function emptyUseRecord(digest: Digest, namespace: string): UseRecord {
  return {
    digest,
    namespace,
    totalUses: 0,
    successes: 0,
    claimedUses: 0,
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
  const isNew = counted.keepable && !record.kept.some(({ digest }) => digest === inputDigest);
  const evicted = isNew && record.kept.length >= KEPT_INPUTS ? leastTelling(record.kept, root) : undefined;
  const keep = isNew && (record.kept.length < KEPT_INPUTS || evicted !== undefined);
  const kept = keep ? [...record.kept.filter((item) => item !== evicted), { digest: inputDigest, root }] : record.kept;
  const next: UseRecord = {
    ...record,
    totalUses: record.totalUses + 1,
    successes: record.successes + (use.succeeded ? 1 : 0),
    claimedUses: record.claimedUses + (use.evidence === 'claimed' ? 1 : 0),
    averageMilliseconds: (record.averageMilliseconds * record.totalUses + use.milliseconds) / (record.totalUses + 1),
    lastUsedAt: use.time > record.lastUsedAt ? use.time : record.lastUsedAt,
    inputs: remember(record.inputs, inputDigest),
    roots: remember(record.roots, root),
    agents: remember(record.agents, use.agent),
    recent: `${record.recent}${use.succeeded ? '+' : '-'}`.slice(-RECENT),
    kept,
  };
  return { record: next, keep, ...(evicted === undefined ? {} : { evict: evicted.digest }) };
}

/**
 * The oldest input of the message that has most of them, so that the inputs kept come from as many messages as possible.
 * None when the new one comes from that same message: an agent cannot push out what others left.
 */
function leastTelling(kept: readonly KeptInput[], newRoot: string): KeptInput | undefined {
  const counts = new Map<string, number>();
  for (const { root } of kept) counts.set(root, (counts.get(root) ?? 0) + 1);
  let most: KeptInput | undefined;
  for (const item of kept) {
    if (most === undefined || (counts.get(item.root) ?? 0) > (counts.get(most.root) ?? 0)) most = item;
  }
  return most === undefined || most.root === newRoot || (counts.get(most.root) ?? 0) < 2 ? undefined : most;
}

function remember(list: string[], item: string): string[] {
  return list.includes(item) || list.length >= COUNTED ? list : [...list, item];
}

export function statisticsOf(record: UseRecord): ToolStatistics {
  const { totalUses, successes } = record;
  return {
    totalUses,
    successes,
    failures: totalUses - successes,
    claimedUses: record.claimedUses,
    distinctInputs: record.inputs.length,
    rootMessages: record.roots.length,
    agents: record.agents.length,
    averageMilliseconds: record.averageMilliseconds,
    successRate: totalUses === 0 ? 0 : successes / totalUses,
    recent: { uses: record.recent.length, failures: record.recent.split('-').length - 1 },
    ...(record.lastUsedAt === '' ? {} : { lastUsedAt: record.lastUsedAt }),
  };
}
