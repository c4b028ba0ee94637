import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import type { Durability, RecordStore } from '../lib/records.ts';
import { type ChainProblem, chained, verifyChain } from './chain.ts';
import type { AuditRecord, AuditTrail, ChainedRecord, Checkpoint } from './port.ts';

const LOG = 'audit/records';
const COLLECTION = 'audit';
const HEAD = 'head';

/** Milliseconds between two writes of the checkpoint. */
const CHECKPOINT_PAUSE = 1_000;

interface Pending {
  record: AuditRecord;
  durability: Durability;
  done: PromiseWithResolvers<void>;
}

/**
 * The provenance chain over a record store: `audit/records.jsonl`, one record a line, and `audit/head.json`, the checkpoint,
 * which follows the record it names: a call waits for its record, not for the checkpoint. The chain is verified before anything
 * is added: throws TEMPER_AUDIT_BROKEN. A checkpoint kept elsewhere may be given too.
 */
export async function openAudit(deps: { records: RecordStore; clock: Clock; known?: Checkpoint }): Promise<AuditTrail> {
  const written = await readChain(deps.records, deps.known);
  return new RecordedTrail(deps, checkpointOf(written.at(-1)), await readHead(deps.records));
}

class RecordedTrail implements AuditTrail {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #known: Checkpoint | undefined;
  #last: Checkpoint | undefined;
  #stored: Checkpoint | undefined;
  #broken: TemperError | undefined;
  #pending: Pending[] = [];
  #draining: Promise<void> | undefined;
  #checkpointing: Promise<void> | undefined;
  #hurry = new AbortController();

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
    if (this.#broken !== undefined) throw this.#broken;
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
    this.#hurry.abort();
    await this.#checkpointing;
    this.#hurry = new AbortController();
    if (this.#broken !== undefined) throw this.#broken;
  }

  async #drain(): Promise<void> {
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      try {
        await this.#write(next.record, next.durability);
        next.done.resolve();
      } catch (error) {
        next.done.reject(this.#breakWith(error));
      }
    }
    this.#draining = undefined;
  }

  async #write(record: AuditRecord, durability: Durability): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    const next = chained(record, this.#last, this.#clock.now().toISOString());
    await this.#store.append(LOG, next as unknown as JsonObject, durability);
    this.#last = { seq: next.seq, digest: next.digest };
    this.#checkpointing ??= this.#checkpoint();
  }

  /** Follows the chain at a distance, one write for all records of the pause before it, and finds another writer there. */
  async #checkpoint(): Promise<void> {
    while (this.#broken === undefined && this.#stored?.seq !== this.#last?.seq) {
      const target = this.#last;
      try {
        assertOnlyWriter(await readHead(this.#store), this.#stored);
        // A checkpoint that survives what it names would make an honest chain look cut off.
        await this.#store.sync(LOG);
        await this.#store.put(COLLECTION, HEAD, { ...target } as JsonObject);
        this.#stored = target;
      } catch (error) {
        this.#breakWith(error);
      }
      await this.#clock.sleep(CHECKPOINT_PAUSE, this.#hurry.signal).catch(() => undefined);
    }
    this.#checkpointing = undefined;
  }

  #breakWith(error: unknown): TemperError {
    this.#broken ??= asBroken(error, this.#last);
    return this.#broken;
  }
}

async function readChain(store: RecordStore, known: Checkpoint | undefined): Promise<ChainedRecord[]> {
  // The checkpoint first: a writer may add a record between the two reads, and never takes one away.
  const head = await readHead(store);
  const lines = await store.read(LOG);
  const problem = verifyChain(lines, head) ?? (known === undefined ? undefined : verifyChain(lines, known));
  if (problem !== undefined) throw brokenChain(problem);
  return lines as unknown as ChainedRecord[];
}

async function readHead(store: RecordStore): Promise<Checkpoint | undefined> {
  const value: Json | undefined = await store.get(COLLECTION, HEAD);
  if (value === undefined) return undefined;
  const seq = member(value, 'seq');
  const digest = member(value, 'digest');
  if (typeof seq === 'number' && typeof digest === 'string') return { seq, digest };
  throw new TemperError('TEMPER_AUDIT_BROKEN', 'audit/head.json is not a checkpoint; restore it from its copy');
}

function checkpointOf(record: ChainedRecord | undefined): Checkpoint | undefined {
  return record === undefined ? undefined : { seq: record.seq, digest: record.digest };
}

function assertOnlyWriter(found: Checkpoint | undefined, mine: Checkpoint | undefined): void {
  if (found?.digest === mine?.digest && found?.seq === mine?.seq) return;
  throw new TemperError(
    'TEMPER_AUDIT_BROKEN',
    `another writer moved the audit chain to record ${found?.seq ?? 0} while this one was at ${mine?.seq ?? 0}; end one of the two processes and start again`,
  );
}

function brokenChain({ seq, problem }: ChainProblem): TemperError {
  return new TemperError(
    'TEMPER_AUDIT_BROKEN',
    `audit record ${seq} ${problem}; trust no tool activated from there on, restore audit/ from its copy`,
    { details: { seq } },
  );
}

/** After a failed write nobody knows what reached the file, so this writer stops and the next open verifies. */
function asBroken(error: unknown, last: Checkpoint | undefined): TemperError {
  if (error instanceof TemperError && error.code === 'TEMPER_AUDIT_BROKEN') return error;
  return new TemperError(
    'TEMPER_AUDIT_BROKEN',
    `the audit record after ${last?.seq ?? 0} could not be written (${messageOf(error, 200)}); nothing more is recorded until the state is opened again`,
    { cause: error },
  );
}
