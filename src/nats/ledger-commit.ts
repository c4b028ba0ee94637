import type { Clock } from '../lib/clock.ts';
import type { Ids } from '../lib/ids.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import type { Denial } from '../ledger/port.ts';
import {
  appliedChange,
  applyChange,
  type Block,
  documentFrom,
  type LedgerChange,
  type LedgerDocument,
  newDocument,
  type OpeningWindow,
} from './ledger-document.ts';
import type { LedgerStore } from './ledger-store.ts';

export interface CommitDeps {
  store: LedgerStore;
  clock: Clock;
  /** From 0 up to 1. */
  random: () => number;
  ids: Ids;
}

export interface Current {
  document: LedgerDocument;
  revision: number;
}

/** `lost`: whether it was made is not known; it must be tried again under the same number before any other. */
export type Committed =
  | { kind: 'made'; current: Current; block: Block | undefined; conflicts: number }
  | { kind: 'denied'; current: Current; denial: Denial }
  | { kind: 'failed'; error: TemperError }
  | { kind: 'lost'; error: TemperError };

const MOST_CONFLICTS = 64;
const MOST_FAILURES = 4;
const LONGEST_WAIT = 20;
const FAILURE_WAIT = 250;

/** What a document begins with when there is none. */
export type Opening = () => readonly OpeningWindow[];

export async function readDocument(deps: CommitDeps, key: string, opening: Opening): Promise<Current> {
  const stored = await deps.store.get(key);
  if (stored === undefined) {
    const document = newDocument(deps.ids.next('epoch'), opening(), deps.clock.now().getTime());
    return { document, revision: 0 };
  }
  const document = documentFrom(stored.value);
  if (document !== undefined) return { document, revision: stored.revision };
  throw new TemperError(
    'TEMPER_STATE_CORRUPT',
    `ledger document "${key}" has not the form of one; delete it to begin anew`,
  );
}

/**
 * Makes one change of one account, against whoever else writes it, a bounded number of times. Never throws. `lostBefore`: it was
 * tried already and may have been made.
 */
export async function commitChange(
  deps: CommitDeps,
  key: string,
  change: LedgerChange,
  { known, lostBefore, opening }: { known: Current | undefined; lostBefore: boolean; opening: Opening },
): Promise<Committed> {
  const attempts: Attempts = { deps, key, change, opening, current: known, conflicts: 0, sent: lostBefore };
  const givenUp = (error: TemperError): Committed => ({ kind: attempts.sent ? 'lost' : 'failed', error });
  let failures = 0;
  for (;;) {
    try {
      const committed = await attempt(attempts);
      if (committed !== undefined) return committed;
      if (attempts.conflicts > MOST_CONFLICTS) return givenUp(busy(key, attempts.conflicts));
      await pause(deps, deps.random() * Math.min(LONGEST_WAIT, 2 * attempts.conflicts));
    } catch (error) {
      attempts.current = undefined;
      failures += 1;
      if (isOwn(error) || failures >= MOST_FAILURES) return givenUp(unavailable(error));
      await pause(deps, FAILURE_WAIT);
    }
  }
}

interface Attempts {
  deps: CommitDeps;
  key: string;
  change: LedgerChange;
  opening: Opening;
  /** What is remembered of the document; undefined: it has to be read. */
  current: Current | undefined;
  conflicts: number;
  /** A write was sent of which no answer came. */
  sent: boolean;
}

/** One attempt; undefined when it must be made again over another revision. */
async function attempt(attempts: Attempts): Promise<Committed | undefined> {
  const { deps, key, change, opening, current, conflicts } = attempts;
  const fresh = current ?? (await readDocument(deps, key, opening));
  attempts.current = undefined;
  const applied = current === undefined ? appliedChange(fresh.document, change) : undefined;
  if (applied !== undefined) return { kind: 'made', current: fresh, block: applied.block, conflicts };
  const outcome = applyChange(fresh.document, change);
  if ('denial' in outcome) {
    // What one remembers may be older than what others gave back.
    if (current !== undefined) return undefined;
    if (attempts.sent) throw busy(key, conflicts);
    return { kind: 'denied', current: fresh, denial: outcome.denial };
  }
  const { next: document, block } = outcome;
  const revision = await write(deps, key, document, fresh.revision, () => {
    attempts.sent = true;
  });
  if (revision !== undefined) return { kind: 'made', current: { document, revision }, block, conflicts };
  attempts.conflicts += 1;
  return undefined;
}

/** Undefined for a conflict, which says that nothing was written; an error leaves that open. */
async function write(
  { store }: CommitDeps,
  key: string,
  next: LedgerDocument,
  revision: number,
  uncertain: () => void,
): Promise<number | undefined> {
  try {
    return await store.write(key, JSON.parse(JSON.stringify(next)), revision);
  } catch (error) {
    uncertain();
    throw error;
  }
}

function pause({ clock }: CommitDeps, milliseconds: number): Promise<void> {
  return clock.sleep(milliseconds, new AbortController().signal);
}

function busy(key: string, conflicts: number): TemperError {
  const message = `the counters of ${key} were written by others ${conflicts} times in a row; try again`;
  return new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff' });
}

export function unavailable(error: unknown): TemperError {
  if (isOwn(error)) return error;
  const message = `the spend counters cannot be reached (${messageOf(error, 200)}); nothing is spent until they can`;
  return new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff', cause: error });
}

/** Not the bus, but what was read from it. */
function isOwn(error: unknown): error is TemperError {
  return isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE') || isTemperError(error, 'TEMPER_STATE_CORRUPT');
}
