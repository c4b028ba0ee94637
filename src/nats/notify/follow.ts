import type { JetStreamConnection } from '../connection/connection.ts';
import { isStreamMissing } from '../connection/errors.ts';
import { NotificationListener } from './notifications.ts';
import { firstMessage } from '../jetstream/stream-reader.ts';

export interface FollowSubjectOptions<T> {
  stream: string;
  subject: string;
  /** Reads on after a sequence. `isNotified`: because of a notification; otherwise at the start, after a reconnect or a pause. */
  read: (last: number, isNotified: boolean) => AsyncIterable<T>;
  /** The subject at which the writers of `subject` notify. */
  notifications: string;
  /** Messages after this sequence. */
  after: number;
  /** Called at the start and after each reconnect: the sequence after which to continue in the store, which may be another one. */
  resume: (last: number) => Promise<number>;
  signal: AbortSignal;
}

/** A notification may be lost. */
const RECHECK_MS = 10_000;
const FAILURE_PAUSE_MS = 500;
/** A replica of the stream that lags has not shown the message of a notification. */
const LAG_PAUSE_MS = 50;

/**
 * Stored and new messages of a subject, in order and without gaps, until the signal is aborted. Reads on at each notification, so that the
 * server has no consumer per reader. Waits while NATS is unavailable; throws what `resume` throws otherwise.
 */
export async function* followSubject<T extends { seq: number }>(
  connection: JetStreamConnection,
  { stream, subject, read, notifications, after, resume, signal }: FollowSubjectOptions<T>,
): AsyncGenerator<T> {
  const ended = AbortSignal.any([signal, connection.closed]);
  if (ended.aborted) return;
  using listener = new NotificationListener(connection, notifications);
  let last = after;
  let isNotified = false;
  let connectedSince: number | undefined;
  while (!ended.aborted) {
    listener.reset();
    const before = last;
    let pauseMs = RECHECK_MS;
    try {
      const since = connection.state().since.getTime();
      const isReconnected = connectedSince !== since;
      if (isReconnected) last = await resume(last);
      connectedSince = since;
      for await (const message of read(last, isNotified && !isReconnected)) {
        if (ended.aborted) return;
        yield message;
        last = Math.max(last, message.seq);
      }
      const isMissing = isNotified && last === before;
      if (isMissing && (await firstMessage(connection, stream, subject, last + 1)) !== undefined)
        pauseMs = LAG_PAUSE_MS;
    } catch (error) {
      if (ended.aborted) return;
      if (!isTransient(error, connection)) throw error;
      pauseMs = FAILURE_PAUSE_MS;
    }
    isNotified = await listener.wait(pauseMs, ended);
  }
}

/** True for errors that end by themselves: the server becomes available again, and the operator recreates lost streams. */
function isTransient(error: unknown, connection: JetStreamConnection): boolean {
  return !connection.state().connected || isStreamMissing(error instanceof Error ? (error.cause ?? error) : error);
}
