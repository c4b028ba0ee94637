import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import type { Denial } from '../../ledger/port.ts';
import {
  findAppliedChange,
  applyChange,
  type Allocation,
  parseAccountRecord,
  type LedgerChange,
  type AccountRecord,
  newAccountRecord,
  type InitialSpendWindow,
} from './account-record.ts';
import type { DocumentStore } from '../jetstream/document-store.ts';

export interface ChangeWriterDeps {
  store: DocumentStore;
  clock: Clock;
  /** Random number from 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  ids: IdGenerator;
}

export interface AccountSnapshot {
  record: AccountRecord;
  revision: number;
}

/** `uncertain`: the server may have stored the change. The caller must repeat it with the same `seq` before any other change. */
export type WriteResult =
  | { kind: 'written'; current: AccountSnapshot; allocation: Allocation | undefined; conflicts: number }
  | { kind: 'denied'; current: AccountSnapshot; denial: Denial }
  | { kind: 'failed'; error: TemperError }
  | { kind: 'uncertain'; error: TemperError };

const MAX_CONFLICTS = 64;
const MAX_FAILURES = 4;
const MAX_CONFLICT_WAIT_MS = 20;
const FAILURE_WAIT_MS = 250;

/** Loads the spend that a new record starts with. */
export type InitialSpend = () => readonly InitialSpendWindow[];

export async function readAccountRecord(
  deps: ChangeWriterDeps,
  key: string,
  initialSpend: InitialSpend,
): Promise<AccountSnapshot> {
  const stored = await deps.store.get(key);
  if (stored === undefined) {
    const document = newAccountRecord(deps.ids.next('epoch'), initialSpend(), deps.clock.now().getTime());
    return { record: document, revision: 0 };
  }
  const document = parseAccountRecord(stored.value);
  if (document !== undefined) return { record: document, revision: stored.revision };
  throw new TemperError(
    'TEMPER_STATE_CORRUPT',
    `ledger record "${key}" is not valid; delete it to start with a new one`,
  );
}

/**
 * Writes one change of one account by compare and swap, with a limited number of attempts. Never throws. `mayBeWritten`: an earlier call
 * sent this change and got no response, so it may be stored already.
 *
 *     base = cached record, or read
 *     read record contains this seq ───────▶ written (by an earlier attempt)
 *     change denied, base was cached ──────▶ read, next attempt (other gateways may have released allocations)
 *     change denied, base was read ────────▶ denied
 *     write at base's revision: stored ────▶ written
 *                               conflict ──▶ wait up to 20 ms, read, next attempt (at most 64 conflicts)
 *                               error ─────▶ mayBeWritten; wait 250 ms, read, next attempt (at most 4 errors)
 *     attempts exhausted ──▶ failed, or uncertain if mayBeWritten
 */
export async function writeChange(
  deps: ChangeWriterDeps,
  key: string,
  change: LedgerChange,
  {
    cached,
    mayBeWritten,
    initialSpend,
  }: { cached: AccountSnapshot | undefined; mayBeWritten: boolean; initialSpend: InitialSpend },
): Promise<WriteResult> {
  const state: WriteState = {
    deps,
    key,
    change,
    initialSpend,
    current: cached,
    conflicts: 0,
    mayBeWritten: mayBeWritten,
  };
  const exhausted = (error: TemperError): WriteResult => ({ kind: state.mayBeWritten ? 'uncertain' : 'failed', error });
  let failures = 0;
  for (;;) {
    try {
      const committed = await tryWrite(state);
      if (committed !== undefined) return committed;
      if (state.conflicts > MAX_CONFLICTS) return exhausted(conflictError(key, state.conflicts));
      await pause(deps, deps.random() * Math.min(MAX_CONFLICT_WAIT_MS, 2 * state.conflicts));
    } catch (error) {
      state.current = undefined;
      failures += 1;
      if (isLedgerError(error) || failures >= MAX_FAILURES) return exhausted(ledgerUnavailable(error));
      await pause(deps, FAILURE_WAIT_MS);
    }
  }
}

interface WriteState {
  deps: ChangeWriterDeps;
  key: string;
  change: LedgerChange;
  initialSpend: InitialSpend;
  /** The cached record; undefined: it must be read. */
  current: AccountSnapshot | undefined;
  conflicts: number;
  /** A write was sent and got no response. */
  mayBeWritten: boolean;
}

/** One attempt. Undefined when another attempt on a newer revision is needed. Updates `current`, `conflicts` and `mayBeWritten` of the state. */
async function tryWrite(state: WriteState): Promise<WriteResult | undefined> {
  const { deps, key, change, initialSpend, current, conflicts } = state;
  const base = current ?? (await readAccountRecord(deps, key, initialSpend));
  state.current = undefined;
  const applied = current === undefined ? findAppliedChange(base.record, change) : undefined;
  if (applied !== undefined) return { kind: 'written', current: base, allocation: applied.block, conflicts };
  const outcome = applyChange(base.record, change);
  if ('denial' in outcome) {
    // The cached record may be older than releases by other gateways.
    if (current !== undefined) return undefined;
    if (state.mayBeWritten) throw conflictError(key, conflicts);
    return { kind: 'denied', current: base, denial: outcome.denial };
  }
  const { next: document, block } = outcome;
  const revision = await putRecord(deps, key, document, base.revision, () => {
    state.mayBeWritten = true;
  });
  if (revision !== undefined)
    return { kind: 'written', current: { record: document, revision }, allocation: block, conflicts };
  state.conflicts += 1;
  return undefined;
}

/** The new revision; undefined for a conflict: nothing was written. After an error the write may have been stored; calls `onUncertain`. */
async function putRecord(
  { store }: ChangeWriterDeps,
  key: string,
  next: AccountRecord,
  revision: number,
  onUncertain: () => void,
): Promise<number | undefined> {
  try {
    return await store.write(key, JSON.parse(JSON.stringify(next)), revision);
  } catch (error) {
    onUncertain();
    throw error;
  }
}

function pause({ clock }: ChangeWriterDeps, milliseconds: number): Promise<void> {
  return clock.sleep(milliseconds, new AbortController().signal);
}

function conflictError(key: string, conflicts: number): TemperError {
  const message = `the spend counters of ${key} had ${conflicts} write conflicts in a row; try again`;
  return new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff' });
}

export function ledgerUnavailable(error: unknown): TemperError {
  if (isLedgerError(error)) return error;
  const message = `the spend counters are not reachable (${messageOf(error, 200)}); calls that cost are rejected until they are`;
  return new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff', cause: error });
}

/** A typed error of the ledger itself, not a connection error. */
function isLedgerError(error: unknown): error is TemperError {
  return isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE') || isTemperError(error, 'TEMPER_STATE_CORRUPT');
}
