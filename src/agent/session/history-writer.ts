import type { ModelMessage } from '../../models/port.ts';
import type { AppendFlags, SessionHistory, SessionStore } from '../ports.ts';

/** Appends to one session in order. Items that arrive during a write are batched into the next one. */
export interface HistoryWriter {
  /** The items of the session: the stored ones, and those that were written since, in their order. */
  readonly items: readonly ModelMessage[];
  /** Resolves when the items are durable, or deferred if they may be. After a failed write every later one fails too. */
  write(items: ModelMessage[], marks?: AppendFlags): Promise<void>;
}

interface WriteBatch {
  items: ModelMessage[];
  tainted: boolean;
  isPrivate: boolean;
  isDeferrable: boolean;
  done: Promise<void>;
}

export function createHistoryWriter(
  sessions: SessionStore,
  session: string,
  history: Pick<SessionHistory, 'seq' | 'items'>,
): HistoryWriter {
  const all = [...history.items];
  let position = history.seq;
  let tail: Promise<void> = Promise.resolve();
  let pending: WriteBatch | undefined;

  const flush = async (batch: WriteBatch): Promise<void> => {
    pending = undefined;
    const flags = {
      ...(batch.tainted ? { tainted: true } : {}),
      ...(batch.isPrivate ? { private: true } : {}),
      ...(batch.isDeferrable ? { deferrable: true } : {}),
    };
    position = await sessions.append(session, position, batch.items, flags);
  };
  return {
    items: all,
    write(items, marks = {}) {
      all.push(...items);
      if (pending === undefined) {
        const marked = { tainted: false, isPrivate: false, isDeferrable: true };
        const batch: WriteBatch = { items: [], ...marked, done: Promise.resolve() };
        batch.done = tail.then(() => flush(batch));
        pending = batch;
        tail = batch.done;
        // Every writer of the batch receives the error, so the tail needs no handler of its own.
        tail.catch(() => undefined);
      }
      pending.items.push(...items);
      pending.tainted ||= marks.tainted === true;
      pending.isPrivate ||= marks.private === true;
      pending.isDeferrable &&= marks.deferrable === true;
      return pending.done;
    },
  };
}
