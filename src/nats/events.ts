import { type ConsumerMessages, DeliverPolicy } from '@nats-io/jetstream';
import { ERROR_CODES, type ErrorCode } from '../lib/error-codes.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { BusConnection } from './connection.ts';
import { isStreamMissing } from './failures.ts';
import { STREAMS, subjects, token } from './names.ts';
import { onceId, publish, type PublishOptions } from './publish.ts';
import { StoreBeginning, storeFacts } from './store-beginning.ts';
import { jsonOf, lastMessage, purge, storedMessages } from './stored.ts';

/** One line of what happens in a session. */
export type EventLine =
  | { kind: 'event'; event: StampedEvent }
  | { kind: 'reply'; message: string; text: string; ending: 'complete' | 'cut' | 'refusal' }
  | { kind: 'failed'; message: string; code: ErrorCode; text: string };

/** With its place in the stream: what `after` of a follower names. Assignable to `FollowLine` of the people's API. */
export type StoredLine = EventLine & { seq: number };

export interface FollowOptions {
  /** Lines after this one; 0 for all there are. */
  after: number;
  signal: AbortSignal;
  /** Ends with TEMPER_BUS_STORE_LOST when the store that `after` is of was lost, instead of going on with what the new one gets. */
  complete?: boolean;
}

interface AppendOptions {
  /** Any text; of events under one key the first is stored. */
  once?: string | undefined;
  /** Becomes a header. */
  traceparent?: string | undefined;
}

export interface Events {
  /**
   * Returns the line's seq. Of the replies to one message the first is stored, whoever repeats it within 30 minutes; so it is of
   * events of an agent under one key.
   */
  append(agentUid: string, session: string, line: EventLine, options?: AppendOptions): Promise<number>;
  /** What is there, oldest first, at most `limit` lines. */
  read(agentUid: string, session: string, after: number, limit: number): Promise<StoredLine[]>;
  /** The seq of the last line; where there is none, the place before all lines of this store, never 0 in one that could be told from another. */
  last(agentUid: string, session: string): Promise<number>;
  /** The place before all lines of this store. */
  beginning(): Promise<number>;
  /** What is there and what comes, in order and without gaps, until the signal is aborted; ends then without an error. */
  follow(agentUid: string, session: string, options: FollowOptions): AsyncIterable<StoredLine>;
  /** For a removed agent. */
  remove(agentUid: string): Promise<void>;
}

/** How much may be on its way to a follower. */
const IN_FLIGHT_BYTES = 512 * 1_024;
const PAUSE = 500;
/** A reader that is gone without a word is forgotten by the server after so long. */
const FORGOTTEN_AFTER = 30_000;

/** Transcripts and replies, kept for a day. */
export function createEvents(connection: BusConnection): Events {
  const beginning = new StoreBeginning(connection);
  const stored = async function* (subject: string, after: number): AsyncGenerator<StoredLine> {
    for await (const { data, seq } of storedMessages(connection, STREAMS.events, subject, after + 1)) {
      const line = lineFrom(jsonOf(data));
      if (line !== undefined) yield { ...line, seq };
    }
  };
  return {
    async append(agentUid, session, line, { once, traceparent } = {}) {
      const id =
        line.kind === 'event' ? optionsOnce(agentUid, once) : { id: `${token(agentUid)}:${line.kind}:${line.message}` };
      const options = { ...id, traceparent };
      const ack = await publish(connection, subjects.events(agentUid, session), line as unknown as Json, options);
      return ack?.seq ?? 0;
    },
    async read(agentUid, session, after, limit) {
      const lines: StoredLine[] = [];
      if (limit <= 0) return lines;
      for await (const line of stored(subjects.events(agentUid, session), after)) {
        lines.push(line);
        if (lines.length >= limit) break;
      }
      return lines;
    },
    async last(agentUid, session) {
      const found = await lastMessage(connection, STREAMS.events, subjects.events(agentUid, session));
      return found?.seq ?? beginning.get();
    },
    beginning: () => beginning.get(),
    async *follow(agentUid, session, { after, signal, complete = false }) {
      const subject = subjects.events(agentUid, session);
      const over = AbortSignal.any([signal, connection.closed]);
      let last = after;
      while (!over.aborted) {
        try {
          last = await placeIn(connection, last, complete);
          // What is there comes in pages: a burst of it would be more than the server lets wait for one client.
          for await (const line of stored(subject, last)) {
            if (over.aborted) return;
            yield line;
            last = line.seq;
          }
          for await (const line of live(connection, subject, last + 1, over)) {
            yield line;
            last = line.seq;
          }
        } catch (error) {
          if (!over.aborted && !isPassing(error, connection)) throw error;
        }
        await connection.clock.sleep(PAUSE, over).catch(() => undefined);
      }
    },
    remove: (agentUid) => purge(connection, STREAMS.events, `temper.events.${token(agentUid)}.*`),
  };
}

/** Where to go on in the store there is now. */
async function placeIn(connection: BusConnection, last: number, complete: boolean): Promise<number> {
  const { beginning, made } = await storeFacts(connection);
  if (last >= beginning) return last;
  if (last > 0 && complete) {
    const message = `the bus lost its store, and has another since ${made}: what waited there is gone; send it again`;
    throw new TemperError('TEMPER_BUS_STORE_LOST', message, { retry: 'never' });
  }
  return beginning;
}

/** A server that is away comes back, and the operator makes the streams of one that lost them. */
function isPassing(error: unknown, connection: BusConnection): boolean {
  return !connection.state().connected || isStreamMissing(error instanceof Error ? (error.cause ?? error) : error);
}

function optionsOnce(agentUid: string, once: string | undefined): PublishOptions {
  return once === undefined ? {} : { id: onceId(`${token(agentUid)}\n${once}`) };
}

/** Ends when the signal is aborted or the server ends it. */
async function* live(
  connection: BusConnection,
  subject: string,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<StoredLine> {
  const options = {
    filter_subjects: subject,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
    inactive_threshold: FORGOTTEN_AFTER,
  };
  const consumer = await connection.ask(() => connection.jetstream.consumers.get(STREAMS.events, options));
  const messages: ConsumerMessages = await consumer.consume({ max_bytes: IN_FLIGHT_BYTES });
  const stop = (): void => messages.stop();
  signal.addEventListener('abort', stop, { once: true });
  // The client alone would wait for heartbeats of a server that knows this reader no more.
  const forget = connection.onChange(stop);
  try {
    if (signal.aborted) return;
    for await (const { data, seq } of messages) {
      const line = lineFrom(jsonOf(data));
      if (line !== undefined) yield { ...line, seq };
    }
  } finally {
    signal.removeEventListener('abort', stop);
    forget();
    messages.stop();
    // At the latest the server forgets it by itself.
    if (connection.state().connected) await consumer.delete().catch(() => false);
  }
}

/** A line as it lay in the stream. */
function lineFrom(value: Json | undefined): EventLine | undefined {
  if (!isJsonObject(value)) return undefined;
  return value.kind === 'event' ? eventFrom(value.event) : endFrom(value);
}

/** Events are what pods claimed: only their outer form is known. */
function eventFrom(event: Json | undefined): EventLine | undefined {
  if (!isJsonObject(event) || typeof event.type !== 'string' || typeof event.time !== 'string') return undefined;
  return { kind: 'event', event: event as unknown as StampedEvent };
}

function endFrom({ kind, message, text, ending, code }: JsonObject): EventLine | undefined {
  if (typeof message !== 'string' || typeof text !== 'string') return undefined;
  if (kind === 'reply' && (ending === 'complete' || ending === 'cut' || ending === 'refusal')) {
    return { kind, message, text, ending };
  }
  if (kind === 'failed' && typeof code === 'string' && Object.hasOwn(ERROR_CODES, code)) {
    return { kind, message, code: code as ErrorCode, text };
  }
  return undefined;
}
