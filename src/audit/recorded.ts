import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import { type ChainProblem, chained, verifyChain } from './chain.ts';
import type { AuditRecord, AuditTrail, ChainedRecord, Checkpoint } from './port.ts';

const LOG = 'audit/records';
const COLLECTION = 'audit';
const HEAD = 'head';

interface Pending {
  record: AuditRecord;
  done: PromiseWithResolvers<void>;
}

/**
 * The provenance chain over a record store: `audit/records.jsonl`, one record a line, and `audit/head.json`, the checkpoint,
 * which follows the record it names: a call waits for its record, not for the checkpoint. The chain is verified before anything is added: throws TEMPER_AUDIT_BROKEN. A checkpoint kept elsewhere may be given too.
 */
export async function openAudit(deps: { records: RecordStore; clock: Clock; known?: Checkpoint }): Promise<AuditTrail> {
  const { records: store, clock } = deps;
  const written = await readChain(store, deps.known);
  let last: Checkpoint | undefined = checkpointOf(written.at(-1));
  let stored = await readHead(store);
  let broken: TemperError | undefined;
  let pending: Pending[] = [];
  let draining: Promise<void> | undefined;

  const write = async ({ record, done }: Pending): Promise<void> => {
    const next = chained(record, last, clock.now().toISOString());
    await store.append(LOG, next as unknown as JsonObject);
    last = { seq: next.seq, digest: next.digest };
    done.resolve();
  };

  /** Records that arrive while others are written share the next checkpoint. */
  const drain = async (): Promise<void> => {
    while (pending.length > 0) {
      const batch = pending;
      pending = [];
      try {
        if (broken !== undefined) throw broken;
        assertOnlyWriter(await readHead(store), stored);
        for (const entry of batch) await write(entry);
        await store.put(COLLECTION, HEAD, { ...last } as JsonObject);
        stored = last;
      } catch (error) {
        broken ??= asBroken(error, last);
        for (const { done } of batch) done.reject(broken);
      }
    }
    draining = undefined;
  };

  return {
    async append(record) {
      if (broken !== undefined) throw broken;
      const done = Promise.withResolvers<void>();
      pending.push({ record: structuredClone(record), done });
      draining ??= drain();
      return done.promise;
    },
    records: () => readChain(store, deps.known),
    head: () => last,
    async flush() {
      await draining;
      if (broken !== undefined) throw broken;
    },
  };
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
