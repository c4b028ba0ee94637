import type { Account } from '../../ledger/account.ts';
import { windowStart } from '../../ledger/windows.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { natsError } from '../connection/errors.ts';
import { totalAt, parseAccountRecord, type AccountRecord, rollWindows } from './account-record.ts';
import { accountKey } from './account-key.ts';
import { BUCKETS, bucketStream, bucketSubject } from '../jetstream/names.ts';
import { parseJsonBytes } from '../../lib/json.ts';
import { EVERY_SUBJECT, readMessages } from '../jetstream/stream-reader.ts';

const STREAM = bucketStream(BUCKETS.ledger);
const PREFIX = bucketSubject(BUCKETS.ledger, '');

/** A read-only replica of all account records as of the last `refresh`. For reports only: no quota decision may use it. */
export class LedgerReplica {
  readonly #records = new Map<string, AccountRecord>();
  #nextSequence = 1;
  #createdAt = '';

  /** Reads the changes since the last call. `time`: milliseconds since the epoch; accounts last charged in an earlier month are removed. Throws TEMPER_BUS_*. */
  async refresh(connection: JetStreamConnection, time: number): Promise<void> {
    const { made, last } = await streamState(connection);
    // A store that was lost and created again counts from one.
    if (made !== this.#createdAt || last < this.#nextSequence - 1) {
      this.#records.clear();
      this.#nextSequence = 1;
      this.#createdAt = made;
    }
    if (last < this.#nextSequence) return;
    for await (const { subject, seq, data } of readMessages(connection, STREAM, EVERY_SUBJECT, this.#nextSequence)) {
      const document = parseAccountRecord(parseJsonBytes(data));
      const key = subject.slice(PREFIX.length);
      if (document === undefined) this.#records.delete(key);
      else this.#records.set(key, document);
      this.#nextSequence = Math.max(this.#nextSequence, seq + 1);
    }
    this.#nextSequence = Math.max(this.#nextSequence, last + 1);
    this.#removeBefore(windowStart('month', time));
  }

  /** Committed spend, and committed plus held spend, in the windows that contain `time`; undefined for an account without a record. */
  get(account: string, time: number): { spent: Account; charged: Account } | undefined {
    const document = this.#records.get(accountKey(account));
    if (document === undefined) return undefined;
    return { spent: rollWindows(document, time).spent, charged: totalAt(document, time) };
  }

  #removeBefore(month: number): void {
    for (const [key, { spent }] of this.#records) {
      if (spent.month.start < month) this.#records.delete(key);
    }
  }
}

async function streamState(connection: JetStreamConnection): Promise<{ made: string; last: number }> {
  try {
    const { created, state } = await connection.request(() => connection.manager.streams.info(STREAM));
    return { made: created, last: state.last_seq };
  } catch (error) {
    throw natsError(error, 'reading the ledger');
  }
}
