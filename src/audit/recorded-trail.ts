import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import type { Durability, RecordStore } from '../lib/record-store.ts';
import { type ChainProblem, chainRecord, verifyChain } from './chain.ts';
import type { AuditRecord, AuditTrail, ChainedRecord, Checkpoint } from './port.ts';

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

/**
 * The provenance chain in a record store: `audit/records.jsonl` with one record per line, and `audit/head.json` with the checkpoint,
 * which is written after the record: a call waits for its record, not for the checkpoint. Verifies the chain before the first append
 * and throws TEMPER_AUDIT_CHAIN_INVALID. `known`: a copy of the checkpoint that was stored elsewhere.
 */
export async function openAudit(deps: { records: RecordStore; clock: Clock; known?: Checkpoint }): Promise<AuditTrail> {
  const written = await readChain(deps.records, deps.known);
  return new RecordStoreTrail(deps, checkpointOf(written.at(-1)), await readHead(deps.records));
}

class RecordStoreTrail implements AuditTrail {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #known: Checkpoint | undefined;
  #last: Checkpoint | undefined;
  #stored: Checkpoint | undefined;
  #failure: TemperError | undefined;
  #pending: PendingRecord[] = [];
  #draining: Promise<void> | undefined;
  #checkpointing: Promise<void> | undefined;
  #flushRequest = new AbortController();

  constructor(
    deps: { records: RecordStore; clock: Clock; known?: Checkpoint },
    last: Checkpoint | undefined,
    stored: Checkpoint | undefined,
  ) {
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
    await this.#store.append(LOG, next as unknown as JsonObject, durability);
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
        await this.#store.put(COLLECTION, HEAD, { ...target } as JsonObject);
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
  const value: Json | undefined = await store.get(COLLECTION, HEAD);
  if (value === undefined) return undefined;
  const seq = member(value, 'seq');
  const digest = member(value, 'digest');
  if (typeof seq === 'number' && typeof digest === 'string') return { seq, digest };
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    'audit/head.json is not a checkpoint; restore it from its backup',
  );
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
