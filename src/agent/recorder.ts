import type { ModelMessage } from '../models/port.ts';
import type { AppendMarks, SessionStore } from './ports.ts';

/** Appends to one session in order. What arrives while a write is on its way goes out together with the next. */
export interface Recorder {
  /** Resolves when the items are durable. After a failed write every later one fails too. */
  write(items: ModelMessage[], marks?: AppendMarks): Promise<void>;
}

interface Batch {
  items: ModelMessage[];
  tainted: boolean;
  done: Promise<void>;
}

export function createRecorder(sessions: SessionStore, session: string, seq: number): Recorder {
  let position = seq;
  let tail: Promise<void> = Promise.resolve();
  let waiting: Batch | undefined;

  const flush = async (batch: Batch): Promise<void> => {
    waiting = undefined;
    position = await sessions.append(session, position, batch.items, batch.tainted ? { tainted: true } : {});
  };
  return {
    write(items, marks = {}) {
      if (waiting === undefined) {
        const batch: Batch = { items: [], tainted: false, done: Promise.resolve() };
        batch.done = tail.then(() => flush(batch));
        waiting = batch;
        tail = batch.done;
        // Every writer of the batch sees the failure; the tail itself is nobody's.
        tail.catch(() => undefined);
      }
      waiting.items.push(...items);
      waiting.tainted ||= marks.tainted === true;
      return waiting.done;
    },
  };
}
