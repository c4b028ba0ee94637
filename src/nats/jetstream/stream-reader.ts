import type { StoredMsg, StreamInfo } from '@nats-io/jetstream';
import { TemperError } from '../../lib/errors.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { isMessageMissing, isStreamMissing, isTooManyResults, natsError } from '../connection/errors.ts';

/** Every subject of a stream. With another filter that matches all of them, the server compares each message with each subject. */
export const EVERY_SUBJECT = '>';

/** One page stays well below the server's `max_pending` for a slow client. */
const PAGE_BYTES = { max_bytes: 512 * 1_024 };
const PAGE_LIMITS = { batch: 256, ...PAGE_BYTES };
/** The most often there is one message, or the caller needs only the first. Many such reads run at a time. */
const SMALL_PAGE_LIMITS = { batch: 8, max_bytes: 64 * 1_024 };

/** Messages of a subject (wildcards allowed) from a sequence on, oldest first, read in pages. Throws TEMPER_BUS_*. */
export async function* readMessages(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
  from = 1,
): AsyncGenerator<StoredMsg> {
  let seq = Math.max(1, from);
  for (;;) {
    const page = await readPage(connection, stream, subject, seq);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || last.pending === 0) return;
    seq = last.seq + 1;
  }
}

/**
 * The last message of each subject that one of the filters matches, oldest first, read in pages. The server finds them by their subjects, where
 * `readMessages` makes it look at the messages of other subjects in between; undefined for more than the 1,024 subjects that it answers at once.
 */
export async function lastMessages(
  connection: JetStreamConnection,
  stream: string,
  filters: readonly string[],
): Promise<StoredMsg[] | undefined> {
  const found = new Map<string, StoredMsg>();
  try {
    for (let seq = 1; ; ) {
      const page = await readLastPage(connection, stream, filters, seq);
      // A subject that got another message since an earlier page comes again, at its new place.
      for (const message of page) {
        found.delete(message.subject);
        found.set(message.subject, message);
      }
      const last = page.at(-1);
      if (last === undefined || last.pending === 0) return [...found.values()];
      seq = last.seq + 1;
    }
  } catch (error) {
    if (error instanceof TemperError && isTooManyResults(error.cause)) return undefined;
    throw error;
  }
}

async function readLastPage(
  connection: JetStreamConnection,
  stream: string,
  filters: readonly string[],
  seq: number,
): Promise<StoredMsg[]> {
  // Without `max_bytes` the server sends as much as `max_pending` allows, and leaves out the rest.
  const query = { multi_last: [...filters], seq, ...PAGE_BYTES };
  return readAll(connection, stream, (direct) => direct.getLastMessagesFor(stream, query));
}

async function readPage(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
  seq: number,
): Promise<StoredMsg[]> {
  const query = { seq, next_by_subj: subject, ...PAGE_LIMITS };
  return readAll(connection, stream, (direct) => direct.getBatch(stream, query));
}

/**
 * The first messages of a subject from a sequence on, oldest first: a few, at least one. Any replica of the stream may answer, and one
 * that lags may show none.
 */
export async function firstMessages(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
  from = 1,
): Promise<StoredMsg[]> {
  const query = { seq: Math.max(1, from), next_by_subj: subject, ...SMALL_PAGE_LIMITS };
  return collect(connection, stream, (direct) => direct.getBatch(stream, query), 'get');
}

type DirectRead = (direct: JetStreamConnection['manager']['direct']) => Promise<AsyncIterable<StoredMsg>>;

async function readAll(connection: JetStreamConnection, stream: string, read: DirectRead): Promise<StoredMsg[]> {
  return connection.limitBulk(() => collect(connection, stream, read, 'page'));
}

async function collect(
  connection: JetStreamConnection,
  stream: string,
  read: DirectRead,
  operation: 'get' | 'page',
): Promise<StoredMsg[]> {
  try {
    return await connection.request(async () => {
      const page: StoredMsg[] = [];
      for await (const message of await read(connection.manager.direct)) page.push(message);
      return page;
    }, operation);
  } catch (error) {
    if (isMessageMissing(error)) return [];
    throw natsError(error, `reading ${stream}`);
  }
}

/** The last message of a subject, read from the stream leader, so never stale; undefined when there is none. */
export async function lastMessage(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
): Promise<StoredMsg | undefined> {
  return getMessage(connection, stream, { last_by_subj: subject });
}

export async function messageAt(
  connection: JetStreamConnection,
  stream: string,
  seq: number,
): Promise<StoredMsg | undefined> {
  return getMessage(connection, stream, { seq });
}

/** The first message of a subject (wildcards allowed) from a sequence on. */
export async function firstMessage(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
  from = 1,
): Promise<StoredMsg | undefined> {
  return getMessage(connection, stream, { seq: Math.max(1, from), next_by_subj: subject });
}

type MessageQuery = { seq: number } | { last_by_subj: string } | { seq: number; next_by_subj: string };

async function getMessage(
  connection: JetStreamConnection,
  stream: string,
  query: MessageQuery,
): Promise<StoredMsg | undefined> {
  try {
    return (await connection.request(() => connection.manager.streams.getMessage(stream, query), 'get')) ?? undefined;
  } catch (error) {
    if (isMessageMissing(error)) return undefined;
    throw natsError(error, `reading ${stream}`);
  }
}

/** Deletes every message of a subject, delete markers included; with `before` only those with a lower sequence. Idempotent. */
export async function purge(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
  before?: number,
): Promise<void> {
  try {
    const range = { filter: subject, ...(before === undefined ? {} : { seq: before }) };
    await connection.request(() => connection.manager.streams.purge(stream, range), 'purge');
  } catch (error) {
    throw natsError(error, `purging ${subject}`);
  }
}

/** Deletes the oldest messages of a subject (wildcards allowed) beyond a number. */
export async function keepLast(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
  keep: number,
): Promise<void> {
  try {
    await connection.request(() => connection.manager.streams.purge(stream, { filter: subject, keep }), 'purge');
  } catch (error) {
    throw natsError(error, `purging ${subject}`);
  }
}

/**
 * Number of messages of a subject (wildcards allowed), without a list of the subjects: the response has one message, however many there are. On
 * several servers it may be of a replica that lags, so it is for limits and reports, not for decisions about one message.
 */
export async function countMessages(connection: JetStreamConnection, stream: string, subject: string): Promise<number> {
  const query = { seq: 1, next_by_subj: subject, batch: 1, ...PAGE_BYTES };
  const [first] = await readAll(connection, stream, (direct) => direct.getBatch(stream, query));
  return first === undefined ? 0 : first.pending + 1;
}

/**
 * Number of messages per subject that matches the filter, from the stream leader, so never stale. The response has no limit in bytes, so a filter must not match what one tenant can
 * make many of; `countMessages` has no such limit.
 */
export async function messageCounts(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
): Promise<Record<string, number>> {
  try {
    const read = () => connection.manager.streams.info(stream, { subjects_filter: subject });
    const info = await connection.limitBulk(() => connection.request(read, 'count'));
    return info.state.subjects ?? {};
  } catch (error) {
    if (isStreamMissing(error)) return {};
    throw natsError(error, `counting ${subject}`);
  }
}

/** The sequence of the last message that the stream stored; 0 for one that has stored none. */
export async function lastSequence(connection: JetStreamConnection, stream: string): Promise<number> {
  try {
    const { state } = await connection.request(() => connection.manager.streams.info(stream));
    return state.last_seq;
  } catch (error) {
    throw natsError(error, `reading the last sequence of ${stream}`);
  }
}

/** The limit of a stream in bytes. */
export async function streamMaxBytes(connection: JetStreamConnection, stream: string): Promise<number> {
  return (await streamInfo(connection, stream)).config.max_bytes;
}

/** The limit of a stream, and what it stores, in bytes. */
export async function streamFill(
  connection: JetStreamConnection,
  stream: string,
): Promise<{ maxBytes: number; bytes: number }> {
  const { config, state } = await streamInfo(connection, stream);
  return { maxBytes: config.max_bytes, bytes: state.bytes };
}

async function streamInfo(connection: JetStreamConnection, stream: string): Promise<StreamInfo> {
  try {
    return await connection.request(() => connection.manager.streams.info(stream));
  } catch (error) {
    throw natsError(error, `reading the size of ${stream}`);
  }
}
