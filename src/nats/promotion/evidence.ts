import { type Digest, sha256 } from '../../lib/canonical.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { RecordedInput, ToolStatistics, ToolUse } from '../../tempering/types.ts';
import {
  countUse,
  emptyUseRecord,
  type KeptInput,
  statisticsOf,
  type UseRecord,
} from '../../tempering/use/use-record.ts';
import { toCountedUse } from '../../tempering/use/use-store.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { purge } from '../jetstream/stream-reader.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';
import { type ChunkedValues, createChunkedValues } from './chunked-values.ts';

/**
 * The reported uses of an agent's tools: statistics per tool over all its sessions, and at most 50 inputs with their recordings, which a
 * verifier runs again. They can open a promotion and never satisfy it. Methods throw TEMPER_BUS_*.
 */
export interface ToolEvidence {
  /**
   * Adds uses of one tool and returns the statistics. Idempotent for the last 32 keys. An input that does not fit into the quota of the
   * agent is counted and not kept. Throws TEMPER_STATE_CORRUPT after 16 write conflicts.
   */
  count(agentUid: string, tool: UsedTool, key: string, uses: readonly ToolUse[]): Promise<ToolStatistics>;
  statistics(agentUid: string, tool: UsedTool): Promise<ToolStatistics>;
  /** The kept inputs with their recordings, those of further root messages first, as far as they have at most `maxBytes` together. */
  recordedInputs(agentUid: string, tool: UsedTool, maxBytes: number): Promise<RecordedInput[]>;
  /** Deletes the statistics and the inputs of a tool. */
  remove(agentUid: string, digest: Digest): Promise<void>;
}

export interface UsedTool {
  digest: Digest;
  namespace: string;
}

interface CountedUses {
  record: UseRecord;
  /** The last counted keys, oldest first. */
  keys: string[];
}

/** Also inputs that do not fit into one message of NATS. A pod sends a report of at most this size. */
const MAX_EVIDENCE_INPUT_BYTES = 256 * 1_024;
/** Of one tool: what a verification runs. */
const MAX_EVIDENCE_TOOL_BYTES = 4 * 1_024 * 1_024;
/** Documents, each of at most MAX_EVIDENCE_INPUT_BYTES. One after the other they take a millisecond or two each. */
const READ_AT_ONCE = 8;
/** A few suffice: a pod repeats a request without a response before it sends the next one. */
const MAX_KEYS = 32;
const MAX_ATTEMPTS = 16;

export function createToolEvidence(
  connection: JetStreamConnection,
  quotaOf: (agentUid: string) => AgentQuota | undefined = () => undefined,
): ToolEvidence {
  const documents = createDocumentStore(connection, BUCKETS.evidence);
  const inputs = createChunkedValues(connection, BUCKETS.evidence);
  const read = async (agentUid: string, tool: UsedTool) => {
    const found = await documents.get(recordKey(agentUid, tool.digest));
    return { counted: parseCounted(found?.value, tool), revision: found?.revision ?? 0 };
  };
  return {
    async count(agentUid, tool, key, uses) {
      const store = new InputStore(inputs, agentUid, tool.digest, quotaOf(agentUid));
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const { counted, revision } = await read(agentUid, tool);
        if (counted.keys.includes(key)) return statisticsOf(counted.record);
        const { record, evicted } = await fold(counted.record, uses, store);
        const next = { record, keys: [...counted.keys, key].slice(-MAX_KEYS) };
        const written = await documents.write(recordKey(agentUid, tool.digest), next as unknown as Json, revision);
        if (written === undefined) continue;
        for (const document of evicted) await inputs.remove(inputKey(agentUid, tool.digest, document));
        return statisticsOf(record);
      }
      throw new TemperError(
        'TEMPER_STATE_CORRUPT',
        `the uses of ${tool.digest} were changed ${MAX_ATTEMPTS} times by other gateways; try again`,
        { retry: 'backoff' },
      );
    },
    async statistics(agentUid, tool) {
      return statisticsOf((await read(agentUid, tool)).counted.record);
    },
    async recordedInputs(agentUid, tool, maxBytes) {
      const { kept } = (await read(agentUid, tool)).counted.record;
      const found: RecordedInput[] = [];
      let bytes = 0;
      const ordered = oneRootAfterTheOther(kept);
      for (let first = 0; first < ordered.length; first += READ_AT_ONCE) {
        const items = ordered.slice(first, first + READ_AT_ONCE);
        const read = (item: KeptInput) => inputs.get(inputKey(agentUid, tool.digest, documentOf(item)));
        const documents = await Promise.all(items.map(read));
        for (const [index, item] of items.entries()) {
          const stored = documents[index];
          // Removed meanwhile, or expired.
          if (stored === undefined || bytes + stored.byteLength > maxBytes) continue;
          const input = recordedInput(item, parseJsonBytes(stored));
          if (input === undefined) continue;
          bytes += stored.byteLength;
          found.push(input);
        }
      }
      return found;
    },
    async remove(agentUid, digest) {
      const subject = bucketSubject(BUCKETS.evidence, `${token(agentUid)}.${token(digest.slice('sha256:'.length))}.>`);
      await purge(connection, bucketStream(BUCKETS.evidence), subject);
      await quotaOf(agentUid)?.recount('evidence');
    },
  };
}

/** Adds the uses to the record, and stores the inputs that the record keeps. */
async function fold(
  before: UseRecord,
  uses: readonly ToolUse[],
  store: InputStore,
): Promise<{ record: UseRecord; evicted: Digest[] }> {
  let record = before;
  const evicted = new Set<Digest>();
  for (const use of uses) {
    const counted = toCountedUse(use, MAX_EVIDENCE_INPUT_BYTES);
    let effect = countUse(record, counted, { maxTool: MAX_EVIDENCE_TOOL_BYTES });
    if (effect.store !== undefined && !(await store.put(documentOf(effect.store), documentContent(use)))) {
      effect = countUse(record, { ...counted, isStorable: false, unstored: 'StorageFull' });
    }
    record = effect.record;
    for (const kept of effect.evict) evicted.add(documentOf(kept));
  }
  const named = new Set(record.kept.map(documentOf));
  return { record, evicted: [...evicted].filter((document) => !named.has(document)) };
}

/** What a document holds of a use. Everything else that a re-run needs is in the record. */
interface StoredInput {
  input: Json;
  recording?: NonNullable<RecordedInput['recording']>;
}

/** The name of the document: one input may have several recordings. */
function documentOf({ digest, recording }: Pick<KeptInput, 'digest' | 'recording'>): Digest {
  return recording === undefined ? digest : sha256(`${digest}\n${recording}`);
}

function documentContent({ input, recording }: ToolUse): StoredInput {
  return recording?.ok === true ? { input, recording: recording.recording } : { input };
}

/** Undefined for a document that does not have what the record says. */
function recordedInput(kept: KeptInput, value: Json | undefined): RecordedInput | undefined {
  if (!isJsonObject(value) || value.input === undefined) return undefined;
  const { digest, root, output, answers = 'none' } = kept;
  const found: RecordedInput = {
    digest,
    root,
    input: value.input,
    answers,
    ...(output === undefined ? {} : { output }),
  };
  if (kept.recording === undefined) return found;
  const { recording } = value;
  return isJsonObject(recording)
    ? { ...found, recording: recording as unknown as NonNullable<RecordedInput['recording']> }
    : undefined;
}

/** Stores inputs of one tool within the quota of its agent. An input that was stored before a write conflict is not stored again. */
class InputStore {
  readonly #inputs: ChunkedValues;
  readonly #agentUid: string;
  readonly #tool: Digest;
  readonly #quota: AgentQuota | undefined;
  readonly #stored = new Set<Digest>();

  constructor(inputs: ChunkedValues, agentUid: string, tool: Digest, quota: AgentQuota | undefined) {
    this.#inputs = inputs;
    this.#agentUid = agentUid;
    this.#tool = tool;
    this.#quota = quota;
  }

  /** False when the quota of the agent has no space for it. */
  async put(document: Digest, content: StoredInput): Promise<boolean> {
    if (this.#stored.has(document)) return true;
    const value = Buffer.from(JSON.stringify(content));
    try {
      await this.#quota?.reserve('evidence', value.byteLength);
    } catch (error) {
      if (isTemperError(error, 'TEMPER_STORAGE_LIMIT_EXCEEDED')) return false;
      throw error;
    }
    const stored = await this.#inputs
      .put(inputKey(this.#agentUid, this.#tool, document), value)
      .catch((error: unknown) => {
        this.#quota?.release('evidence', value.byteLength);
        throw error;
      });
    if (!stored) this.#quota?.release('evidence', value.byteLength);
    this.#stored.add(document);
    return true;
  }
}

/** The first input of each root message, then the second of each, and so on. */
function oneRootAfterTheOther(kept: UseRecord['kept']): UseRecord['kept'] {
  const positions = new Map<string, number>();
  const ranked = kept.map((item) => {
    const position = positions.get(item.root) ?? 0;
    positions.set(item.root, position + 1);
    return { item, position };
  });
  return ranked.sort((one, other) => one.position - other.position).map(({ item }) => item);
}

function recordKey(agentUid: string, digest: Digest): string {
  return `${token(agentUid)}.${token(digest.slice('sha256:'.length))}.record`;
}

function inputKey(agentUid: string, tool: Digest, document: Digest): string {
  return `${token(agentUid)}.${token(tool.slice('sha256:'.length))}.input.${token(document.slice('sha256:'.length))}`;
}

function parseCounted(value: Json | undefined, { digest, namespace }: UsedTool): CountedUses {
  const record = isJsonObject(value) ? value['record'] : undefined;
  const keys = isJsonObject(value) ? value['keys'] : undefined;
  if (!isJsonObject(record) || !Array.isArray(keys)) return { record: emptyUseRecord(digest, namespace), keys: [] };
  return { record: record as unknown as UseRecord, keys: keys as string[] };
}
