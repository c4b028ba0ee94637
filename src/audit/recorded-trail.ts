import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { type Json, type JsonObject, member, parseUntrustedJson } from '../lib/json.ts';
import type { Durability, RecordStore } from '../lib/record-store.ts';
import { type ChainProblem, chainRecord, EMPTY_DIGEST, verifyChain } from './chain.ts';
import type { AuditRecord, AuditTrail, ChainedRecord, Checkpoint } from './port.ts';
import { type AuditKey, signatureOf, signatureState, type SignatureState } from './signature.ts';

const LOG = 'audit/records';
const COLLECTION = 'audit';
const HEAD = 'head';

/** Minimum time between two writes of the checkpoint. */
const CHECKPOINT_INTERVAL_MS = 1_000;

interface PendingRecord {
  record: AuditRecord;
  durability: Durability;
  done: PromiseWithResolvers<void>;
}

export interface AuditDeps {
  records: RecordStore;
  clock: Clock;
  /** A copy of the checkpoint that was stored elsewhere. */
  known?: Checkpoint;
  /** Signs every record and checkpoint. Without it the chain proves the order of its records, and not their author. */
  key?: AuditKey;
  /** Continues a chain that `key` did not sign: from its next checkpoint on, `key` signs it whole. */
  adopts?: boolean;
}

/**
 * The provenance chain in a record store: `audit/records.jsonl` with one record per line, and `audit/head.json` with the checkpoint,
 * which is written after the record: a call waits for its record, not for the checkpoint. Verifies the chain before the first append
 * and throws TEMPER_AUDIT_CHAIN_INVALID, with a key also for a checkpoint or a later record that the key did not sign.
 */
export async function openAudit(deps: AuditDeps): Promise<AuditTrail> {
  const written = await readChain(deps.records, deps.known);
  const head = await readHead(deps.records);
  if (deps.key !== undefined && deps.adopts !== true)
    assertSigned(await readHeadDocument(deps.records), written, deps.key);
  return new RecordStoreTrail(deps, checkpointOf(written.at(-1)), head);
}

/** Stores the signed checkpoint of an empty chain. It marks a state folder that was created by the holder of the key. */
export async function startChain(records: RecordStore, key: AuditKey): Promise<void> {
  const start = { seq: 0, digest: EMPTY_DIGEST };
  await records.put(COLLECTION, HEAD, signed(start, key));
}

/** Whether the key signed the checkpoint of the stored chain. `absent` also when there is no checkpoint. */
export async function checkpointSignature(records: RecordStore, key: AuditKey | undefined): Promise<SignatureState> {
  return signatureState('checkpoint', await readHeadDocument(records), key);
}

class RecordStoreTrail implements AuditTrail {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #known: Checkpoint | undefined;
  readonly #key: AuditKey | undefined;
  #last: Checkpoint | undefined;
  #stored: Checkpoint | undefined;
  #failure: TemperError | undefined;
  #pending: PendingRecord[] = [];
  #draining: Promise<void> | undefined;
  #checkpointing: Promise<void> | undefined;
  #flushRequest = new AbortController();

  constructor(deps: AuditDeps, last: Checkpoint | undefined, stored: Checkpoint | undefined) {
    this.#key = deps.key;
    this.#store = deps.records;
    this.#clock = deps.clock;
    this.#known = deps.known;
    this.#last = last;
    this.#stored = stored;
  }

  async append(record: AuditRecord, durability: Durability = 'synced'): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const done = Promise.withResolvers<void>();
    this.#pending.push({ record: structuredClone(record), durability, done });
    this.#draining ??= this.#drain();
    return done.promise;
  }

  records(): Promise<ChainedRecord[]> {
    return readChain(this.#store, this.#known);
  }

  head(): Checkpoint | undefined {
    return this.#last;
  }

  async flush(): Promise<void> {
    await this.#draining;
    this.#flushRequest.abort();
    await this.#checkpointing;
    this.#flushRequest = new AbortController();
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #drain(): Promise<void> {
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      try {
        await this.#write(next.record, next.durability);
        next.done.resolve();
      } catch (error) {
        next.done.reject(this.#fail(error));
      }
    }
    this.#draining = undefined;
  }

  async #write(record: AuditRecord, durability: Durability): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const next = chainRecord(record, this.#last, this.#clock.now().toISOString());
    const signature = this.#key === undefined ? {} : { signature: signatureOf('record', next, this.#key) };
    await this.#store.append(LOG, { ...next, ...signature } as unknown as JsonObject, durability);
    this.#last = { seq: next.seq, digest: next.digest };
    this.#checkpointing ??= this.#checkpoint();
  }

  /** Writes the checkpoint after the records, one write per interval, and detects another writer by a changed checkpoint. */
  async #checkpoint(): Promise<void> {
    while (this.#failure === undefined && this.#stored?.seq !== this.#last?.seq) {
      const target = this.#last;
      try {
        assertOnlyWriter(await readHead(this.#store), this.#stored);
        // Sync first: after a crash, a checkpoint of a record that was not synced would make an intact chain look cut off.
        await this.#store.sync(LOG);
        if (target !== undefined) await this.#store.put(COLLECTION, HEAD, signed(target, this.#key));
        this.#stored = target;
      } catch (error) {
        this.#fail(error);
      }
      await this.#clock.sleep(CHECKPOINT_INTERVAL_MS, this.#flushRequest.signal).catch(() => undefined);
    }
    this.#checkpointing = undefined;
  }

  #fail(error: unknown): TemperError {
    this.#failure ??= chainError(error, this.#last);
    return this.#failure;
  }
}

async function readChain(store: RecordStore, known: Checkpoint | undefined): Promise<ChainedRecord[]> {
  // The checkpoint first: between the two reads a writer may add records, but never removes one.
  const head = await readHead(store);
  const lines = await store.read(LOG);
  const problem = verifyChain(lines, head) ?? (known === undefined ? undefined : verifyChain(lines, known));
  if (problem !== undefined) throw invalidChain(problem);
  return lines as unknown as ChainedRecord[];
}

async function readHead(store: RecordStore): Promise<Checkpoint | undefined> {
  const value = await readHeadDocument(store);
  if (value === undefined) return undefined;
  const head = checkpointIn(value);
  if (head !== undefined) return head;
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    'audit/head.json is not a checkpoint; restore it from its backup',
  );
}

/** The checkpoint in a copy of `audit/head.json`; undefined for any other text. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  try {
    return checkpointIn(parseUntrustedJson(text));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function checkpointIn(value: Json): Checkpoint | undefined {
  const seq = member(value, 'seq');
  const digest = member(value, 'digest');
  return typeof seq === 'number' && typeof digest === 'string' ? { seq, digest } : undefined;
}

function readHeadDocument(store: RecordStore): Promise<Json | undefined> {
  return store.get(COLLECTION, HEAD);
}

function signed(checkpoint: Checkpoint, key: AuditKey | undefined): JsonObject {
  return {
    ...checkpoint,
    ...(key === undefined ? {} : { signature: { ...signatureOf('checkpoint', checkpoint, key) } }),
  };
}

/** The checkpoint signs all records up to its own; a crash leaves later records, each with its own signature. */
function assertSigned(head: Json | undefined, records: readonly ChainedRecord[], key: AuditKey): void {
  if (signatureState('checkpoint', head, key) !== 'valid') {
    throw new TemperError(
      'TEMPER_AUDIT_CHAIN_INVALID',
      'audit/head.json is not signed with your key; restore audit/ from its backup, or take the state folder over with temper audit --adopt',
    );
  }
  const seq = member(head, 'seq');
  const later = records.slice(typeof seq === 'number' ? seq : 0);
  const foreign = later.find((record) => signatureState('record', record as unknown as Json, key) !== 'valid');
  if (foreign !== undefined) throw invalidChain({ seq: foreign.seq, problem: 'is not signed with your key' });
}

function checkpointOf(record: ChainedRecord | undefined): Checkpoint | undefined {
  return record === undefined ? undefined : { seq: record.seq, digest: record.digest };
}

function assertOnlyWriter(found: Checkpoint | undefined, mine: Checkpoint | undefined): void {
  if (found?.digest === mine?.digest && found?.seq === mine?.seq) return;
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `another writer moved the audit chain to record ${found?.seq ?? 0} while this one was at ${mine?.seq ?? 0}; stop one of the two processes and restart the other`,
  );
}

function invalidChain({ seq, problem }: ChainProblem): TemperError {
  return new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `audit record ${seq} ${problem}; do not trust tools activated after it, restore audit/ from its backup`,
    { details: { seq } },
  );
}

/** After a failed write the content of the file is unknown, so this writer stops; the next `openAudit` verifies the chain. */
function chainError(error: unknown, last: Checkpoint | undefined): TemperError {
  if (error instanceof TemperError && error.code === 'TEMPER_AUDIT_CHAIN_INVALID') return error;
  return new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `the audit record after ${last?.seq ?? 0} could not be written (${messageOf(error, 200)}); no record is written until the process is restarted`,
    { cause: error },
  );
}
