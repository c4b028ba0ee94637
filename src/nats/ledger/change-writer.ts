import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
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
  /** Called after each written change, with the number of conflicts before it. */
  onWritten?: (conflicts: number) => void;
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

/** What is known before a write. `mayBeWritten`: an earlier call sent this change and got no response, so it may be stored already. */
export interface WriteOptions {
  cached: AccountSnapshot | undefined;
  mayBeWritten: boolean;
  initialSpend: InitialSpend;
}

/**
 * Writes one change of one account by compare and swap, with a limited number of attempts. Never throws.
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
  { cached, mayBeWritten: wasSent, initialSpend }: WriteOptions,
): Promise<WriteResult> {
  let base = cached;
  let mayBeWritten = wasSent;
  let conflicts = 0;
  let failures = 0;
  const exhausted = (error: TemperError): WriteResult => ({ kind: mayBeWritten ? 'uncertain' : 'failed', error });
  for (;;) {
    const attempt = await tryWrite(deps, key, change, { cached: base, initialSpend });
    // Every further attempt reads the record.
    base = undefined;
    switch (attempt.kind) {
      case 'written':
        return { ...attempt, conflicts };
      case 'denied':
        if (!mayBeWritten) return attempt;
        // The earlier write may still arrive, so the denial is not final.
        return exhausted(conflictError(key, conflicts));
      case 'outdated':
      case 'conflict':
        if (attempt.kind === 'conflict') conflicts += 1;
        if (conflicts > MAX_CONFLICTS) return exhausted(conflictError(key, conflicts));
        await pause(deps, deps.random() * Math.min(MAX_CONFLICT_WAIT_MS, 2 * conflicts));
        break;
      case 'error':
        mayBeWritten ||= attempt.wasSent;
        failures += 1;
        if (isLedgerError(attempt.error) || failures >= MAX_FAILURES)
          return exhausted(ledgerUnavailable(attempt.error));
        await pause(deps, FAILURE_WAIT_MS);
        break;
      default:
        return attempt satisfies never;
    }
  }
}

type Attempt =
  | { kind: 'written'; current: AccountSnapshot; allocation: Allocation | undefined }
  | { kind: 'denied'; current: AccountSnapshot; denial: Denial }
  /** Denied by the cached record, which may be older than releases by other gateways. */
  | { kind: 'outdated' }
  /** Another gateway wrote the record first; nothing was written. */
  | { kind: 'conflict' }
  /** `wasSent`: the server may have stored the change. */
  | { kind: 'error'; error: unknown; wasSent: boolean };

async function tryWrite(
  deps: ChangeWriterDeps,
  key: string,
  change: LedgerChange,
  { cached, initialSpend }: Pick<WriteOptions, 'cached' | 'initialSpend'>,
): Promise<Attempt> {
  let wasSent = false;
  try {
    const base = cached ?? (await readAccountRecord(deps, key, initialSpend));
    const applied = cached === undefined ? findAppliedChange(base.record, change) : undefined;
    if (applied !== undefined) return { kind: 'written', current: base, allocation: applied.block };
    const outcome = applyChange(base.record, change);
    if ('denial' in outcome) {
      return cached === undefined ? { kind: 'denied', current: base, denial: outcome.denial } : { kind: 'outdated' };
    }
    const { next: record, block } = outcome;
    const value = JSON.parse(JSON.stringify(record)) as Json;
    wasSent = true;
    const revision = await deps.store.write(key, value, base.revision);
    if (revision === undefined) return { kind: 'conflict' };
    return { kind: 'written', current: { record, revision }, allocation: block };
  } catch (error) {
    return { kind: 'error', error, wasSent };
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
