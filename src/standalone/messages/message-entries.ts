import type { Ask } from '../../agent/messages/ask.ts';
import type { Envelope } from '../../bus/port.ts';
import { MAX_PAST_EVENTS } from '../../events/limits.ts';
import type { ScheduledRunOutcome } from '../../schedule/advance.ts';
import {
  applyEventEntry,
  type EventEntry,
  type EventRecords,
  isEventEntry,
  noEventRecords,
  trimPublished,
} from '../events/event-entries.ts';
import { applyPeerEntry, isPeerEntry, type PeerEntry, type PeerRecords } from '../peers/peer-entries.ts';
import {
  applyScheduleEntry,
  endRun,
  noScheduleRecords,
  type ScheduleEntry,
  type ScheduleRecords,
} from '../schedules/schedule-entries.ts';

/** What changes the messages, the schedules and the events of a state folder. The entries of one change are stored together or not at all. */
export type MessageEntry =
  | { op: 'stored'; agent: string; sequence: number; message: Envelope }
  /** A delivery begins: its number. */
  | { op: 'attempted'; agent: string; id: string; deliveries: number }
  /** `excused`: the cause is outside the agent. */
  | { op: 'delayed'; agent: string; id: string; until: number; excused?: boolean }
  /** The message waits for the decisions about these requests. */
  | { op: 'parked'; agent: string; id: string; requests: readonly string[]; time: number }
  | { op: 'resumed'; agent: string; id: string; time: number }
  /** `outcome`: how the run of a schedule ended; absent for one that does not count. */
  | { op: 'ended'; agent: string; id: string; time: number; outcome?: ScheduledRunOutcome }
  | { op: 'asked'; agent: string; ticket: string; ask: Ask }
  /** The agent is gone, with its inbox and its questions. */
  | { op: 'removed'; agent: string }
  | ScheduleEntry
  | EventEntry
  | PeerEntry;

/** A message that has not ended. */
export interface QueuedMessage {
  readonly sequence: number;
  readonly message: Envelope;
  readonly deliveries: number;
  /** Epoch milliseconds: not delivered before. */
  readonly notBefore: number;
  /** Absent for a message that waits for no decision. */
  readonly parked?: { readonly requests: readonly string[]; readonly since: number };
  /** Milliseconds for which it waited for decisions; its deadline moves by them. */
  readonly parkedMs: number;
  /** The last delivery failed by a cause outside the agent. */
  readonly excused?: boolean;
}

/** The messages, questions, schedules, events and tasks of callers of one agent. */
export interface Inbox {
  /** By id, oldest first. */
  readonly messages: Map<string, QueuedMessage>;
  /** Ended messages by id, oldest first: a message that is sent again is the same message. */
  readonly ended: Map<string, { readonly time: number; readonly root: string }>;
  /** By ticket, oldest first. */
  readonly asks: Map<string, Ask>;
  readonly schedules: ScheduleRecords;
  readonly events: EventRecords;
  readonly peers: PeerRecords;
  bytes: number;
}

/** All inboxes, by the key of their agent. */
export type Inboxes = Map<string, Inbox>;

/** Ended messages and questions that an agent keeps, unless they are needed for longer. */
const MAX_ENDED = 500;
const MAX_ASKS = 500;
const ENDED_MS = 24 * 3_600_000;

export function inboxOf(inboxes: Inboxes, agent: string): Inbox {
  const found = inboxes.get(agent);
  if (found !== undefined) return found;
  const created = {
    messages: new Map(),
    ended: new Map(),
    asks: new Map(),
    schedules: noScheduleRecords(),
    events: noEventRecords(),
    peers: new Map(),
    bytes: 0,
  };
  inboxes.set(agent, created);
  return created;
}

/** Applies a stored entry. One about a message that is not there changes nothing. */
export function applyEntry(inboxes: Inboxes, entry: MessageEntry): void {
  const inbox = inboxOf(inboxes, entry.agent);
  if (entry.op === 'removed') return void inboxes.delete(entry.agent);
  if (entry.op === 'asked') {
    inbox.asks.set(entry.ticket, entry.ask);
    return trimAsks(inbox);
  }
  if (entry.op === 'scheduled' || entry.op === 'schedule-made' || entry.op === 'unscheduled')
    return applyScheduleEntry(inbox.schedules, entry);
  if (isPeerEntry(entry)) return applyPeerEntry(inbox.peers, entry);
  if (isEventEntry(entry)) {
    applyEventEntry(inbox.events, entry);
    if (entry.op === 'event-published') trimPublished(eventsBeside(inboxes, entry.agent), MAX_PAST_EVENTS);
    return;
  }
  if (entry.op === 'stored') {
    const { message, sequence } = entry;
    inbox.messages.set(message.id, { sequence, message, deliveries: 0, notBefore: 0, parkedMs: 0 });
    inbox.bytes += bytesOf(message);
    return;
  }
  const queued = inbox.messages.get(entry.id);
  if (queued === undefined) return;
  if (entry.op === 'ended') {
    inbox.messages.delete(entry.id);
    inbox.bytes -= bytesOf(queued.message);
    inbox.ended.set(entry.id, { time: entry.time, root: queued.message.root });
    endRun(inbox.schedules, entry.id, entry);
    return;
  }
  inbox.messages.set(entry.id, changed(queued, entry));
}

type ChangeOfMessage = Extract<MessageEntry, { op: 'attempted' | 'delayed' | 'parked' | 'resumed' }>;

function changed(queued: QueuedMessage, entry: ChangeOfMessage): QueuedMessage {
  switch (entry.op) {
    case 'attempted':
      return { ...queued, deliveries: entry.deliveries };
    case 'delayed':
      return { ...queued, notBefore: entry.until, excused: entry.excused === true };
    case 'parked':
      // A delivery that parks is no failed attempt.
      return { ...queued, deliveries: 0, parked: { requests: entry.requests, since: entry.time } };
    case 'resumed': {
      const { parked, ...open } = queued;
      return { ...open, parkedMs: queued.parkedMs + Math.max(0, entry.time - (parked?.since ?? entry.time)) };
    }
    default:
      return queued;
  }
}

/** Forgets ended messages that no sender can repeat: they are old or many, and their chain has ended. */
export function trimEnded(inboxes: Inboxes, now: number): void {
  const open = new Set([...inboxes.values()].flatMap(({ messages }) => [...messages.values()].map(rootOf)));
  for (const { ended } of inboxes.values()) {
    for (const [id, { time, root }] of ended) {
      const isKept = open.has(root) || (ended.size <= MAX_ENDED && now - time < ENDED_MS);
      if (!isKept) ended.delete(id);
    }
  }
}

export function bytesOf({ text }: Envelope): number {
  return Buffer.byteLength(text);
}

/** A question without an answer, and one whose message is in work, are kept. */
function trimAsks({ asks, messages }: Inbox): void {
  for (const [ticket, { state, message }] of asks) {
    if (asks.size <= MAX_ASKS) return;
    if (state !== 'Pending' && !messages.has(message)) asks.delete(ticket);
  }
}

/** The events of all agents of the namespace of this agent. */
function eventsBeside(inboxes: Inboxes, agent: string): EventRecords[] {
  const namespace = `${agent.split('/', 1)[0]}/`;
  return [...inboxes].flatMap(([key, { events }]) => (key.startsWith(namespace) ? [events] : []));
}

function rootOf({ message }: QueuedMessage): string {
  return message.root;
}
