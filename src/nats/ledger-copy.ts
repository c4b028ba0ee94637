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

/** The counters of all accounts as they were at the last look, for who wants to know and decides nothing by them. */
export class LedgerCopy {
  readonly #documents = new Map<string, LedgerDocument>();
  #next = 1;
  #made = '';

  /** Reads what changed since the last time. `time`: milliseconds since the epoch; accounts of months before it are forgotten. */
  async refresh(connection: BusConnection, time: number): Promise<void> {
    const { made, last } = await stateOf(connection);
    // A store that was lost and made anew counts from one again.
    if (made !== this.#made || last < this.#next - 1) {
      this.#documents.clear();
      this.#next = 1;
      this.#made = made;
    }
    if (last < this.#next) return;
    for await (const { subject, seq, data } of storedMessages(connection, STREAM, `${PREFIX}>`, this.#next)) {
      const document = documentFrom(jsonOf(data));
      const key = subject.slice(PREFIX.length);
      if (document === undefined) this.#documents.delete(key);
      else this.#documents.set(key, document);
      this.#next = Math.max(this.#next, seq + 1);
    }
    this.#next = Math.max(this.#next, last + 1);
    this.#forgetBefore(windowStart('month', time));
  }

  /** What was settled, and what is settled or held, in the windows that hold `time`; nothing for who never spent. */
  of(account: string, time: number): { spent: Account; charged: Account } | undefined {
    const document = this.#documents.get(accountKey(account));
    if (document === undefined) return undefined;
    return { spent: rolled(document, time).spent, charged: chargedAt(document, time) };
  }

  #forgetBefore(month: number): void {
    for (const [key, { spent }] of this.#documents) {
      if (spent.month.start < month) this.#documents.delete(key);
    }
  }
}

async function stateOf(connection: BusConnection): Promise<{ made: string; last: number }> {
  try {
    const { created, state } = await connection.ask(() => connection.manager.streams.info(STREAM));
    return { made: created, last: state.last_seq };
  } catch (error) {
    throw busFailure(error, 'reading the ledger');
  }
}
