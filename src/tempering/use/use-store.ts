import { canonicalJson, type Digest, sha256 } from '../../lib/canonical.ts';
import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { hexOf, pathSegment } from '../registry/object-name.ts';
import type { RecordedInput, ToolStatistics, ToolUse } from '../types.ts';
import {
  type CountedUse,
  countUse,
  emptyUseRecord,
  MAX_INPUT_BYTES,
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
  /** Inputs to write before the record that references them. */
  fresh: Map<Digest, RecordedInput>;
  /** Inputs to delete after the record is written. */
  evicted: Digest[];
}

export function createUseStore(records: RecordStore): UseStore {
  const slots = new Map<string, Promise<Slot>>();
  const slotOf = (digest: Digest, namespace: string): Promise<Slot> => {
    const key = `${namespace}\n${digest}`;
    const found = slots.get(key) ?? loadSlot(records, digest, namespace);
    slots.set(key, found);
    return found;
  };
  return {
    async record(use) {
      const slot = await slotOf(use.digest, use.namespace);
      const counted = toCountedUse(use);
      const effect = countUse(slot.record, counted);
      slot.record = effect.record;
      if (effect.store)
        slot.fresh.set(counted.inputDigest, { digest: counted.inputDigest, root: counted.root, input: use.input });
      if (effect.evict !== undefined) slot.evicted.push(effect.evict);
      slot.dirty = true;
      await persist(records, slot);
    },
    async statistics(digest, namespace) {
      return statisticsOf((await slotOf(digest, namespace)).record);
    },
    async recordedInputs(digest, namespace) {
      const slot = await slotOf(digest, namespace);
      await slot.writing;
      const found: RecordedInput[] = [];
      for (const kept of slot.record.kept) {
        const input = await records.get(inputsOf(slot.record), hexOf(kept.digest));
        // Ignore an input whose file was edited and no longer matches its digest.
        if (input !== undefined && sha256(canonicalOrRaw(input).text) === kept.digest) found.push({ ...kept, input });
      }
      return found;
    },
    async delete(digest, namespace) {
      const slot = await slotOf(digest, namespace);
      slots.delete(`${namespace}\n${digest}`);
      await slot.writing;
      await records.delete(collectionOf(namespace), hexOf(digest));
      await records.deleteCollection(inputsOf(slot.record));
    },
  };
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
  const fresh = [...slot.fresh.values()];
  const evicted = slot.evicted.splice(0);
  slot.fresh.clear();
  for (const { digest, input } of fresh) await records.put(inputsOf(record), hexOf(digest), input);
  await records.put(collectionOf(record.namespace), hexOf(record.digest), record as unknown as JsonObject);
  const named = new Set(record.kept.map(({ digest }) => digest));
  for (const digest of evicted) if (!named.has(digest)) await records.delete(inputsOf(record), hexOf(digest));
}

async function loadSlot(records: RecordStore, digest: Digest, namespace: string): Promise<Slot> {
  const empty = emptyUseRecord(digest, namespace);
  const stored = await records.get(collectionOf(namespace), hexOf(digest));
  const record =
    isJsonObject(stored) && stored.digest === digest ? { ...empty, ...(stored as unknown as UseRecord) } : empty;
  return { record, dirty: false, writing: undefined, fresh: new Map(), evicted: [] };
}

/** Computes the digests that identify a use. */
export function toCountedUse(use: ToolUse, maxInputBytes = MAX_INPUT_BYTES): CountedUse {
  const { text, canonical } = canonicalOrRaw(use.input);
  return {
    use,
    inputDigest: sha256(text),
    root: sha256(use.rootMessage),
    isStorable: canonical && Buffer.byteLength(text) <= maxInputBytes,
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
