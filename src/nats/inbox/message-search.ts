import {
  type DeliveryState,
  MAX_OPEN_SESSIONS,
  oldestDue,
  type OpenDelivery,
  openDeliveries,
} from './delivery-state.ts';
import { type ParsedMessage, parseMessage } from './envelope.ts';
import type { InboxStore } from './inbox-store.ts';
import type { SkippedMessage, SkippedMessages } from './skipped-messages.ts';

/** A message that may be delivered now. */
export interface Candidate extends ParsedMessage {
  sequence: number;
  /** The delivery of before, when the message is redelivered. */
  previous?: OpenDelivery;
}

export interface Search {
  state: DeliveryState;
  now: number;
  /** Messages up to this sequence have ended. */
  after: number;
  /** Sessions that wait for their turn; a redelivery waits for none. */
  served: ReadonlySet<string>;
  /** See `InboxStore.messages`. */
  isExpected: boolean;
}

export type SearchResult =
  | { kind: 'candidate'; candidate: Candidate }
  /** A message of the state or of the memory has left the inbox: change the state, then search again. */
  | { kind: 'gone'; sequence: number; previous?: OpenDelivery }
  /** No message at all, whatever the state. */
  | { kind: 'empty' }
  /**
   * Every message belongs to a session that waits. `next`: the oldest one whose session waits only for its turn, if this search has read it.
   * `isCertain`: false when a replica that lags may have kept back a message behind those that the search read; the next search asks the leader.
   */
  | { kind: 'waiting'; next?: Candidate; isCertain: boolean };

/**
 * Finds the oldest message of an inbox whose session waits neither for the end of a delivery nor for its turn:
 *
 *   a message that is to be redelivered now ─┐
 *   a skipped message of a session           ├── the lowest sequence
 *     that does not wait any more ───────────┤
 *   the messages after the last skipped one ─┘   read in order, up to the lower sequence of the two above
 *
 * Reads each message of a waiting session once per process, and no message while `MAX_OPEN_SESSIONS` sessions wait.
 */
export async function searchMessage(
  store: InboxStore,
  skipped: SkippedMessages,
  agentUid: string,
  { state, now, after, served, isExpected }: Search,
): Promise<SearchResult> {
  const open = openDeliveries(state);
  const due = oldestDue(state, now);
  if (open.length >= MAX_OPEN_SESSIONS) {
    return due === undefined ? { kind: 'waiting', isCertain: true } : knownMessage(store, agentUid, due);
  }
  const busy = new Set(open.map(({ session }) => session));
  const waiting = new Set([...served, ...busy]);
  const known = older(due, skipped.oldestOutside(agentUid, waiting));
  const isOldestUnread = skipped.oldestOutside(agentUid, busy) === undefined;
  const range = {
    from: Math.max(skipped.position(agentUid), after) + 1,
    before: known?.sequence ?? Number.POSITIVE_INFINITY,
    isExpected,
  };
  const unread = await searchUnread(store, skipped, agentUid, { ...range, busy, waiting });
  if (unread.candidate !== undefined) return { kind: 'candidate', candidate: unread.candidate };
  if (known !== undefined) return knownMessage(store, agentUid, known);
  if (unread.isEmpty && range.from === 1 && open.length === 0) return { kind: 'empty' };
  const next = isOldestUnread && unread.passed !== undefined ? { next: unread.passed } : {};
  return { kind: 'waiting', ...next, isCertain: unread.isEmpty };
}

interface Unread {
  /** The first message whose session does not wait. */
  candidate?: Candidate;
  /** The first one that the search passed whose session waits only for its turn. */
  passed?: Candidate;
  isEmpty: boolean;
}

interface UnreadRange extends Pick<Search, 'isExpected'> {
  from: number;
  before: number;
  /** Sessions with an open delivery. */
  busy: ReadonlySet<string>;
  /** These, and the sessions that wait for their turn. */
  waiting: ReadonlySet<string>;
}

/** Reads the messages that no search has passed yet, up to the first one whose session does not wait. */
async function searchUnread(
  store: InboxStore,
  skipped: SkippedMessages,
  agentUid: string,
  { busy, waiting, ...range }: UnreadRange,
): Promise<Unread> {
  const result: Unread = { isEmpty: true };
  for await (const message of messagesBefore(store, agentUid, range)) {
    result.isEmpty = false;
    const session = message.envelope?.session ?? '';
    if (!waiting.has(session)) return { ...result, candidate: message };
    skipped.add(agentUid, { sequence: message.sequence, session });
    if (!busy.has(session)) result.passed ??= message;
  }
  return result;
}

function older(
  one: OpenDelivery | undefined,
  other: SkippedMessage | undefined,
): OpenDelivery | SkippedMessage | undefined {
  return one === undefined || (other !== undefined && other.sequence < one.sequence) ? other : one;
}

async function* messagesBefore(
  store: InboxStore,
  agentUid: string,
  { from, before, isExpected }: Omit<UnreadRange, 'busy' | 'waiting'>,
): AsyncGenerator<Candidate> {
  for await (const { sequence, data, traceparent } of store.messages(agentUid, from, isExpected)) {
    if (sequence >= before) return;
    yield { sequence, ...parseMessage(data, traceparent) };
  }
}

async function knownMessage(
  store: InboxStore,
  agentUid: string,
  known: OpenDelivery | SkippedMessage,
): Promise<SearchResult> {
  const { sequence } = known;
  const previous = 'deliveries' in known ? { previous: known } : {};
  const found = await store.message(agentUid, sequence);
  if (found === undefined) return { kind: 'gone', sequence, ...previous };
  return { kind: 'candidate', candidate: { sequence, ...previous, ...parseMessage(found.data, found.traceparent) } };
}
