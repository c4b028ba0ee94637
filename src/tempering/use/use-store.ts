import { canonicalJson, type Digest, sha256 } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf, pathSegment } from '../registry/object-name.ts';
import type { RecordedInput, ToolStatistics, ToolUse } from '../types.ts';
import { AgentBytes } from './agent-bytes.ts';
import {
  type CountedUse,
  countUse,
  emptyUseRecord,
  type KeptInput,
  statisticsOf,
  type UseRecord,
} from './use-record.ts';

/** Use records by namespace and digest; never shared across namespaces. */
export interface UseStore {
  /** Durable when it resolves. Concurrent uses of one tool are written in one batch. */
  record(use: ToolUse): Promise<void>;
  statistics(digest: Digest, namespace: string): Promise<ToolStatistics>;
  recordedInputs(digest: Digest, namespace: string): Promise<RecordedInput[]>;
  delete(digest: Digest, namespace: string): Promise<void>;
}

/** The record of one tool in memory, with its pending write. */
interface Slot {
  record: UseRecord;
  dirty: boolean;
  writing: Promise<void> | undefined;
  /** Inputs and recordings to write before the record that references them. */
  fresh: Map<Digest, Json>;
  /** Inputs whose documents to delete after the record is written. */
  evicted: KeptInput[];
}

export function createUseStore(records: RecordStore): UseStore {
  const slots = new Map<string, Promise<Slot>>();
  const agentBytes = new AgentBytes(async (namespace) => {
    const stored = await records.list(collectionOf(namespace));
    return stored.flatMap(({ value }) =>
      isJsonObject(value) ? ((value['kept'] ?? []) as unknown as KeptInput[]) : [],
    );
  });
  const slotOf = (digest: Digest, namespace: string): Promise<Slot> => {
    const key = `${namespace}\n${digest}`;
    const found = slots.get(key) ?? loadSlot(records, digest, namespace);
    slots.set(key, found);
    return found;
  };
  return {
    async record(use) {
      await agentBytes.load(use.namespace);
      const slot = await slotOf(use.digest, use.namespace);
      const counted = toCountedUse(use);
      const before = slot.record.kept;
      const effect = countUse(slot.record, counted, { agent: agentBytes.of(use.namespace, use.agent) });
      agentBytes.replace(use.namespace, before, effect.record.kept);
      slot.record = effect.record;
      for (const [digest, document] of documentsOf(effect.store, use)) slot.fresh.set(digest, document);
      slot.evicted.push(...effect.evict);
      slot.dirty = true;
      await persist(records, slot);
    },
    async statistics(digest, namespace) {
      return statisticsOf((await slotOf(digest, namespace)).record);
    },
    async recordedInputs(digest, namespace) {
      const slot = await slotOf(digest, namespace);
      await slot.writing;
      const found = await Promise.all(slot.record.kept.map((kept) => readInput(records, slot.record, kept)));
      return found.filter((input) => input !== undefined);
    },
    async delete(digest, namespace) {
      await agentBytes.load(namespace);
      const slot = await slotOf(digest, namespace);
      slots.delete(`${namespace}\n${digest}`);
      await slot.writing;
      agentBytes.replace(namespace, slot.record.kept, []);
      await records.delete(collectionOf(namespace), hexOf(digest));
      await records.deleteCollection(inputsOf(slot.record));
    },
  };
}

function documentsOf(stored: KeptInput | undefined, { input, recording }: ToolUse): [Digest, Json][] {
  if (stored === undefined) return [];
  const documents: [Digest, Json][] = [[stored.digest, input]];
  if (stored.recording !== undefined && recording?.ok === true) {
    documents.push([stored.recording, recording.recording as unknown as Json]);
  }
  return documents;
}

/** Undefined when a document is missing, or was edited and no longer has its digest. */
async function readInput(records: RecordStore, record: UseRecord, kept: KeptInput): Promise<RecordedInput | undefined> {
  const read = async (digest: Digest): Promise<Json | undefined> => {
    const value = await records.get(inputsOf(record), hexOf(digest));
    return value !== undefined && sha256(canonicalOrRaw(value).text) === digest ? value : undefined;
  };
  const { digest, root, output, answers = 'none' } = kept;
  const input = await read(digest);
  if (input === undefined) return undefined;
  const found: RecordedInput = { digest, root, input, answers, ...(output === undefined ? {} : { output }) };
  if (kept.recording === undefined) return found;
  const recording = await read(kept.recording);
  return recording === undefined
    ? undefined
    : { ...found, recording: recording as unknown as NonNullable<RecordedInput['recording']> };
}

/** Joins the pending write, or starts a new one after the running one. */
async function persist(records: RecordStore, slot: Slot): Promise<void> {
  while (slot.dirty) {
    if (slot.writing !== undefined) {
      await slot.writing;
      continue;
    }
    slot.dirty = false;
    slot.writing = write(records, slot);
    try {
      await slot.writing;
    } finally {
      slot.writing = undefined;
    }
    return;
  }
  await slot.writing;
}

async function write(records: RecordStore, slot: Slot): Promise<void> {
  const { record } = slot;
  const fresh = [...slot.fresh];
  const evicted = slot.evicted.splice(0);
  slot.fresh.clear();
  for (const [digest, document] of fresh) await records.put(inputsOf(record), hexOf(digest), document);
  await records.put(collectionOf(record.namespace), hexOf(record.digest), record as unknown as JsonObject);
  const named = new Set(record.kept.flatMap(digestsOf));
  for (const digest of evicted.flatMap(digestsOf)) {
    if (!named.has(digest)) await records.delete(inputsOf(record), hexOf(digest));
  }
}

function digestsOf({ digest, recording }: KeptInput): Digest[] {
  return recording === undefined ? [digest] : [digest, recording];
}

async function loadSlot(records: RecordStore, digest: Digest, namespace: string): Promise<Slot> {
  const empty = emptyUseRecord(digest, namespace);
  const stored = await records.get(collectionOf(namespace), hexOf(digest));
  const record =
    isJsonObject(stored) && stored.digest === digest ? { ...empty, ...(stored as unknown as UseRecord) } : empty;
  return { record, dirty: false, writing: undefined, fresh: new Map(), evicted: [] };
}

/** Computes the digests that identify a use. */
export function toCountedUse(use: ToolUse, maxInputBytes = Number.POSITIVE_INFINITY): CountedUse {
  const { text, canonical } = canonicalOrRaw(use.input);
  const recording = use.recording?.ok === true ? canonicalOrRaw(use.recording.recording as unknown as Json).text : '';
  const isTooLarge = Buffer.byteLength(text) > maxInputBytes;
  return {
    use,
    inputDigest: sha256(text),
    root: sha256(use.rootMessage),
    ...(recording === '' ? {} : { recordingDigest: sha256(recording) }),
    bytes: Buffer.byteLength(text) + Buffer.byteLength(recording),
    isStorable: canonical && !isTooLarge,
    ...(isTooLarge ? { unstored: 'InputTooLarge' as const } : {}),
  };
}

/** A lone surrogate has no canonical form; such an input is counted but not stored. */
function canonicalOrRaw(input: ToolUse['input']): { text: string; canonical: boolean } {
  try {
    return { text: canonicalJson(input), canonical: true };
  } catch (error) {
    if (error instanceof RangeError) return { text: JSON.stringify(input), canonical: false };
    throw error;
  }
}

function collectionOf(namespace: string): string {
  return `uses/${pathSegment(namespace)}`;
}

function inputsOf(record: UseRecord): string {
  return `${collectionOf(record.namespace)}/${hexOf(record.digest)}`;
}
