import type { Account } from '../ledger/account.ts';
import { windowStart } from '../ledger/windows.ts';
import type { BusConnection } from './connection.ts';
import { busFailure } from './failures.ts';
import { chargedAt, documentFrom, type LedgerDocument, rolled } from './ledger-document.ts';
import { accountKey } from './ledger-keys.ts';
import { BUCKETS, bucketStream, bucketSubject } from './names.ts';
import { jsonOf, storedMessages } from './stored.ts';

const STREAM = bucketStream(BUCKETS.ledger);
const PREFIX = bucketSubject(BUCKETS.ledger, '');

/** A read-only replica of all account records as of the last `refresh`. For reports only: no quota decision may use it. */
export class LedgerCopy {
  readonly #records = new Map<string, LedgerDocument>();
  #nextSequence = 1;
  #createdAt = '';

  /** Reads the changes since the last call. `time`: milliseconds since the epoch; accounts last charged in an earlier month are removed. Throws TEMPER_BUS_*. */
  async refresh(connection: BusConnection, time: number): Promise<void> {
    const { made, last } = await streamState(connection);
    // A store that was lost and created again counts from one.
    if (made !== this.#createdAt || last < this.#nextSequence - 1) {
      this.#records.clear();
      this.#nextSequence = 1;
      this.#createdAt = made;
    }
    if (last < this.#nextSequence) return;
    for await (const { subject, seq, data } of storedMessages(connection, STREAM, `${PREFIX}>`, this.#nextSequence)) {
      const document = documentFrom(jsonOf(data));
      const key = subject.slice(PREFIX.length);
      if (document === undefined) this.#records.delete(key);
      else this.#records.set(key, document);
      this.#nextSequence = Math.max(this.#nextSequence, seq + 1);
    }
    this.#nextSequence = Math.max(this.#nextSequence, last + 1);
    this.#removeBefore(windowStart('month', time));
  }

  /** Committed spend, and committed plus held spend, in the windows that contain `time`; undefined for an account without a record. */
  of(account: string, time: number): { spent: Account; charged: Account } | undefined {
    const document = this.#records.get(accountKey(account));
    if (document === undefined) return undefined;
    return { spent: rolled(document, time).spent, charged: chargedAt(document, time) };
  }

  #removeBefore(month: number): void {
    for (const [key, { spent }] of this.#records) {
      if (spent.month.start < month) this.#records.delete(key);
    }
  }
}

async function streamState(connection: BusConnection): Promise<{ made: string; last: number }> {
  try {
    const { created, state } = await connection.ask(() => connection.manager.streams.info(STREAM));
    return { made: created, last: state.last_seq };
  } catch (error) {
    throw busFailure(error, 'reading the ledger');
  }
}
