import type { Digest } from '../../lib/canonical.ts';
import type { AnswerEvidence, ToolStatistics, ToolUse, UnstoredReason } from '../types.ts';
import { answerEvidence, countAnswers } from './use-recording.ts';

/** Maximum number of stored inputs per tool. */
export const MAX_STORED_INPUTS = 50;
/** Bytes of the stored inputs and recordings: of one use, of one tool, and of all tools of one agent. */
const MAX_USE_BYTES = 2_097_152;
const MAX_TOOL_BYTES = 16_777_216;
const MAX_AGENT_BYTES = 134_217_728;
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
  /** Absent in records of earlier versions. */
  sessions?: string[];
  /** Outcome of the last 20 uses, oldest first: `+` or `-`. */
  recent: string;
  kept: KeptInput[];
  /** Uses whose input was not stored, by reason. */
  unrecorded: Partial<Record<UnstoredReason, number>>;
}

/** A stored input. The input and the recording are documents with these digests. */
export interface KeptInput {
  digest: Digest;
  root: string;
  output?: Digest;
  recording?: Digest;
  /** Absent in records of earlier versions, which recorded no calls. */
  answers?: AnswerEvidence;
  agent?: string;
  bytes?: number;
}

/** One use with the digests computed from it. */
export interface CountedUse {
  use: ToolUse;
  inputDigest: Digest;
  root: string;
  /** Absent when the tool needs no recording, or the use has none. */
  recordingDigest?: Digest;
  /** Bytes of the input and the recording. */
  bytes: number;
  /** Whether this store keeps inputs, and the input has a canonical JSON form. */
  isStorable: boolean;
  /** Why the store does not keep it. */
  unstored?: UnstoredReason;
}

export interface UseEffect {
  record: UseRecord;
  /** The stored form of the input; absent when it is not stored. */
  store?: KeptInput;
  evict: KeptInput[];
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
    unrecorded: {},
  };
}

/** Bytes that a use finds stored, and the limit for its tool. */
interface UseStorage {
  /** Of all tools of the agent of the use. */
  agent?: number;
  /** Maximum of one tool. */
  maxTool?: number;
}

export function countUse(record: UseRecord, counted: CountedUse, stored: UseStorage = {}): UseEffect {
  const { use, inputDigest, root } = counted;
  const storage = planStorage(record.kept, counted, stored);
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
    sessions: addDistinct(record.sessions ?? [], use.session),
    recent: `${record.recent}${use.succeeded ? '+' : '-'}`.slice(-RECENT_USES),
    kept: storage.kept,
    unrecorded: storage.reason === undefined ? record.unrecorded : addOne(record.unrecorded, storage.reason),
  };
  const evict = record.kept.filter((item) => !storage.kept.includes(item));
  return { record: next, evict, ...(storage.added === undefined ? {} : { store: storage.added }) };
}

interface StoragePlan {
  kept: KeptInput[];
  added?: KeptInput;
  /** Why the use is not stored. Absent also when the same use is stored already. */
  reason?: UnstoredReason;
}

function planStorage(
  kept: KeptInput[],
  counted: CountedUse,
  { agent: agentBytes = 0, maxTool = MAX_TOOL_BYTES }: UseStorage,
): StoragePlan {
  const { use, bytes, recordingDigest } = counted;
  if (!counted.isStorable) return { kept, ...(counted.unstored === undefined ? {} : { reason: counted.unstored }) };
  if (use.recording?.ok === false) return { kept, reason: use.recording.reason };
  if (bytes > MAX_USE_BYTES)
    return { kept, reason: recordingDigest === undefined ? 'InputTooLarge' : 'RecordingTooLarge' };
  // A re-run of a tool that needs recorded answers cannot use an input of an earlier version, which has none.
  const usable = recordingDigest === undefined ? kept : kept.filter(({ recording }) => recording !== undefined);
  if (usable.some((item) => isSameEvidence(item, counted))) return { kept: usable };
  const added = keptInput(counted);
  const rest = evictFor(usable, added, maxTool);
  if (rest === undefined) return { kept: usable, reason: 'StorageFull' };
  const agentRest = agentBytes - bytesOf(kept) + bytesOf(rest);
  if (agentRest + bytes > MAX_AGENT_BYTES) return { kept: usable, reason: 'StorageFull' };
  return { kept: [...rest, added], added };
}

/** A tool with recorded answers gives other evidence for one input in another message, or when it succeeds after a failure. */
function isSameEvidence(item: KeptInput, { use, inputDigest, root, recordingDigest }: CountedUse): boolean {
  if (item.digest !== inputDigest) return false;
  if (recordingDigest === undefined) return true;
  return item.root === root && (item.output === undefined) === (use.output === undefined);
}

function keptInput({ use, inputDigest, root, recordingDigest, bytes }: CountedUse): KeptInput {
  const recording = use.recording?.ok === true ? use.recording.recording : undefined;
  return {
    digest: inputDigest,
    root,
    ...(use.output === undefined ? {} : { output: use.output }),
    ...(recordingDigest === undefined ? {} : { recording: recordingDigest }),
    answers: answerEvidence(recording, use.evidence),
    agent: use.agent,
    bytes,
  };
}

/** The stored inputs that leave place for a new one. Undefined when it has no place. */
function evictFor(kept: readonly KeptInput[], added: KeptInput, maxBytes: number): KeptInput[] | undefined {
  let rest = [...kept];
  while (rest.length >= MAX_STORED_INPUTS || bytesOf(rest) + (added.bytes ?? 0) > maxBytes) {
    const evicted = mostRedundant(rest, added.root);
    if (evicted === undefined) return undefined;
    rest = rest.filter((item) => item !== evicted);
  }
  return rest;
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

/** Bytes of the stored inputs, of all agents or of one. */
export function bytesOf(kept: readonly KeptInput[], agent?: string): number {
  const counted = kept.filter((item) => agent === undefined || item.agent === agent);
  return counted.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}

function addDistinct(list: string[], item: string): string[] {
  return list.includes(item) || list.length >= MAX_DISTINCT ? list : [...list, item];
}

function addOne(counts: UseRecord['unrecorded'], reason: UnstoredReason): UseRecord['unrecorded'] {
  return { ...counts, [reason]: (counts[reason] ?? 0) + 1 };
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
    sessions: record.sessions?.length ?? 0,
    recordedInputs: countAnswers(record.kept.map(({ answers = 'none' }) => ({ answers }))),
    unrecorded: record.unrecorded,
    averageMilliseconds: record.averageMilliseconds,
    successRate: totalUses === 0 ? 0 : successes / totalUses,
    recent: { uses: record.recent.length, failures: record.recent.split('-').length - 1 },
    ...(record.lastUsedAt === '' ? {} : { lastUsedAt: record.lastUsedAt }),
  };
}
