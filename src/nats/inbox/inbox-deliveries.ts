import type { Envelope } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import {
  attempts,
  begin,
  carriedOver,
  type DeliveryIdentity,
  extend,
  findCurrent,
  inFlight,
  lastUntil,
  nextDueTime,
  openDeliveries,
  type OpenDelivery,
  park,
  parkedDeliveries,
  type RedeliveryReason,
  type Rejection,
  reject,
  remove,
  resume,
  retryAt,
} from './delivery-state.ts';
import { DeliveryStates } from './delivery-states.ts';
import { parseMessage } from './envelope.ts';
import type { EndedMessage, InboxStore, StoredDeliveryState } from './inbox-store.ts';
import { type Candidate, type Search, type SearchResult, searchMessage } from './message-search.ts';
import { SessionRounds } from './session-rounds.ts';
import { SkippedMessages } from './skipped-messages.ts';

/** Everything another process needs to end a delivery. Plain JSON without a secret and without proof of origin: sign it. */
export interface DeliveryCoordinates {
  agentUid: string;
  /** Id of the message. */
  message: string;
  streamSequence: number;
  /** 1 for the first. */
  deliveries: number;
}

export interface DeliveryRules {
  /** Acknowledgement timeout of each delivery, in order. Their number is the maximum number of deliveries. */
  ackWaitsMs: readonly number[];
}

export interface InboxDelivery {
  message: Envelope;
  coordinates: DeliveryCoordinates;
  /** The message is redelivered after this time unless the receiver calls `working`. */
  ackWaitMs: number;
  /** Why the message is delivered again; undefined for its first delivery. */
  redelivery?: RedeliveryReason;
}

/** A delivery; or, when no message can be delivered, the time at which the next one is due, in epoch milliseconds. */
export type TakeResult = { delivery: InboxDelivery } | { delivery?: undefined; dueTime: number | undefined };

/**
 * Stores what a reply consists of, at once with the look whether the delivery is the current one. Nothing may take effect before
 * `isCurrent` resolves; when it rejects, nothing may, and what was prepared is removed.
 */
export type StoreReply = (isCurrent: Promise<void>) => Promise<void>;

export interface InboxDeliveriesDeps {
  store: InboxStore;
  clock: Clock;
  rules: DeliveryRules;
  /** Called after a change with which another message may be deliverable. */
  changed: (agentUid: string) => void;
}

/** For an acknowledgement to be stored: in this time no other process redelivers the message. */
const ACK_GUARD_MS = 30_000;
const CONFLICT_PAUSE_MS = 10;
const EXHAUSTED_REASON = 'delivered the maximum number of times without an acknowledgement';

/**
 * Delivers the messages of inboxes and ends deliveries. Every decision is one compare-and-swap of the delivery state of the agent;
 * the steps after it can be repeated by any process:
 *
 *   take ── search ──► swap: in flight ──► not ended before? ──► delivery
 *   ack ── read, or swap: extended (refused for an earlier delivery) ∥ reply prepared ──► reply ──► record `ended` ──► delete message ∥ swap: removed
 *   reject ── swap: rejected ──► dead letter ──► record `ended` ──► delete message ──► swap: removed
 *   retry, park ── swap: waits
 *   resume ── swap: due
 */
export class InboxDeliveries {
  readonly #deps: InboxDeliveriesDeps;
  readonly #states: DeliveryStates;
  readonly #skipped = new SkippedMessages();
  readonly #rounds = new SessionRounds();

  constructor(deps: InboxDeliveriesDeps) {
    this.#deps = deps;
    this.#states = new DeliveryStates(deps.store);
  }

  /** Forgets what it remembers of NATS, whose store may be another one. */
  clear(): void {
    this.#states.clear();
    this.#skipped.clear();
    this.#rounds.clear();
  }

  /**
   * Delivers the oldest message that can be delivered now. At most `limit` messages of the agent are in flight, and one per session.
   * `isExpected`: whether there is one most often, as after a notification.
   */
  async take(agentUid: string, limit: number, signal: AbortSignal, isExpected = true): Promise<TakeResult> {
    let stored = this.#states.known(agentUid);
    let isFresh = false;
    /** Sequence of the last message that was found to have ended; a replica of the stream that lags may still show it. */
    let after = 0;
    /** What was found with a remembered state, which may be older than the end of the delivery in flight. */
    let found: { revision: number; dueTime: number | undefined } | undefined;
    for (;;) {
      stored ??= await this.#readState(agentUid, () => (isFresh = true));
      if (stored.revision === found?.revision) return { dueTime: found.dueTime };
      const step = await this.#step(agentUid, stored, { after, limit, isExpected });
      if ('delivery' in step) return { delivery: step.delivery };
      if (step.kind === 'ended') after = step.sequence;
      if (step.kind === 'conflict') await this.#pause(signal);
      const none = certainNone(step);
      if (none !== undefined && (isFresh || none.isEmpty)) return { dueTime: none.dueTime };
      found = none && { revision: stored.revision, dueTime: none.dueTime };
      stored = undefined;
      if (signal.aborted) return { dueTime: undefined };
    }
  }

  async ack(at: DeliveryCoordinates, storeReply: StoreReply = (isCurrent) => isCurrent): Promise<void> {
    const guarded = this.#guard(at).then(() => this.#now() + ACK_GUARD_MS);
    const isCurrent = guarded.then(() => undefined);
    const stored = storeReply(isCurrent);
    // Both are awaited below, one after the other.
    for (const part of [isCurrent, stored]) part.catch(() => undefined);
    let guardedUntil: number;
    try {
      guardedUntil = await guarded;
    } catch (error) {
      await stored.catch(() => undefined);
      // A repeated call: the first one has ended the message.
      if (!isEndOfDelivery(error) || !(await this.#wasEndedBy(at, 'acked'))) throw error;
      await this.#finish(at);
      return;
    }
    await stored;
    if (this.#now() >= guardedUntil) await this.#guard(at);
    await this.#recordEnd(at, 'acked');
    await this.#finish(at);
  }

  async retry(at: DeliveryCoordinates, delayMs: number): Promise<void> {
    const until = this.#now() + Math.max(0, delayMs);
    await this.#states.update(at.agentUid, (state) => retryAt(state, identityOf(at), until, 'retry'));
    this.#deps.changed(at.agentUid);
  }

  /** The message waits for an approval until `resume`, at the latest until `untilMs` in epoch milliseconds. */
  async park(at: DeliveryCoordinates, untilMs: number): Promise<void> {
    await this.#states.update(at.agentUid, (state) => park(state, identityOf(at), untilMs, this.#now()));
    this.#deps.changed(at.agentUid);
  }

  /** Redelivers a parked message; false when the message is not parked. */
  async resume(agentUid: string, message: string): Promise<boolean> {
    let isResumed = false;
    await this.#states.update(agentUid, (state) => {
      const next = resume(state, message, this.#now());
      isResumed = next !== state;
      return next;
    });
    if (isResumed) this.#deps.changed(agentUid);
    return isResumed;
  }

  /** Ids of the messages that wait for an approval. */
  async parked(agentUid: string): Promise<{ message: string; session: string }[]> {
    const { state } = await this.#states.read(agentUid);
    return parkedDeliveries(state, this.#now()).map(({ message, session }) => ({ message, session }));
  }

  /** Ids of the messages of the session that have not ended, delivered or not. */
  async unendedIn(agentUid: string, session: string): Promise<string[]> {
    return (await this.#messagesOf(agentUid, session)).map(({ message }) => message);
  }

  /** A message that ended and is not removed yet counts too. */
  async unendedSessions(agentUid: string): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for await (const { data, traceparent } of this.#deps.store.messages(agentUid, 1)) {
      const { envelope } = parseMessage(data, traceparent);
      if (envelope !== undefined) found.add(envelope.session);
    }
    return found;
  }

  /** Rejects all messages of the session that have not ended, delivered or not. Returns their ids. */
  async rejectSession(agentUid: string, session: string, rejection: Rejection): Promise<string[]> {
    const found = await this.#messagesOf(agentUid, session);
    const { state } = await this.#states.read(agentUid);
    for (const { message, sequence } of found) {
      const open = openDeliveries(state).find((one) => one.sequence === sequence);
      const identity = { message, sequence, deliveries: open?.deliveries ?? 0 };
      await this.#completeRejection(coordinatesOf(agentUid, identity), rejection);
    }
    return found.map(({ message }) => message);
  }

  /**
   * Ends a message, delivered or not, without a dead letter. False when it has ended. `storeEnd` runs before; a repeated call after an
   * error runs it again.
   */
  async withdraw(
    agentUid: string,
    { message, sequence }: Pick<DeliveryIdentity, 'message' | 'sequence'>,
    storeEnd: () => Promise<void>,
  ): Promise<boolean> {
    const { state } = await this.#states.read(agentUid);
    const deliveries = openDeliveries(state).find((one) => one.sequence === sequence)?.deliveries ?? 0;
    const at = coordinatesOf(agentUid, { message, sequence, deliveries });
    if (await this.#hasEnded(at)) return false;
    if ((await this.#deps.store.message(agentUid, sequence)) === undefined) return false;
    await storeEnd();
    await this.#recordEnd(at, 'rejected');
    await this.#finish(at);
    return true;
  }

  async #messagesOf(agentUid: string, session: string): Promise<Pick<DeliveryIdentity, 'message' | 'sequence'>[]> {
    const found: Pick<DeliveryIdentity, 'message' | 'sequence'>[] = [];
    for await (const { sequence, data, traceparent } of this.#deps.store.messages(agentUid, 1)) {
      const { envelope } = parseMessage(data, traceparent);
      if (envelope?.session !== session) continue;
      const at = { message: envelope.id, sequence };
      if (!(await this.#hasEnded(coordinatesOf(agentUid, { ...at, deliveries: 0 })))) found.push(at);
    }
    return found;
  }

  async reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void> {
    try {
      await this.#states.update(at.agentUid, (state) => reject(state, identityOf(at), { code, reason }));
    } catch (error) {
      if (!isEndOfDelivery(error) || !(await this.#wasEndedBy(at, 'rejected'))) throw error;
    }
    await this.#completeRejection(at, { code, reason });
  }

  async working(at: DeliveryCoordinates): Promise<void> {
    await this.#states.update(at.agentUid, (state) => {
      const identity = identityOf(at);
      const until = this.#now() + this.ackWaitMs(attempts(findCurrent(state, identity) ?? at));
      return extend(state, identity, until);
    });
  }

  async inFlight(agentUid: string): Promise<DeliveryIdentity[]> {
    const found = inFlight((await this.#states.read(agentUid)).state, this.#now());
    return found.map(({ sequence, message, deliveries }) => ({ sequence, message, deliveries }));
  }

  /** Redelivers this delivery at once; false when it has ended. */
  async release(agentUid: string, delivery: Pick<DeliveryIdentity, 'sequence' | 'deliveries'>): Promise<boolean> {
    const now = this.#now();
    let isReleased = false;
    await this.#states.update(agentUid, (state) => {
      const { sequence, deliveries } = delivery;
      const current = inFlight(state, now).find((one) => one.sequence === sequence && one.deliveries === deliveries);
      isReleased = current !== undefined;
      return current === undefined ? state : retryAt(state, current, now, 'podDeleted');
    });
    if (isReleased) this.#deps.changed(agentUid);
    return isReleased;
  }

  ackWaitMs(deliveries: number): number {
    const { ackWaitsMs } = this.#deps.rules;
    return ackWaitsMs[Math.max(1, Math.min(deliveries, ackWaitsMs.length)) - 1] ?? ACK_GUARD_MS;
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }

  async #readState(agentUid: string, onRead: () => void): Promise<StoredDeliveryState> {
    const stored = await this.#states.read(agentUid);
    onRead();
    return stored;
  }

  async #pause(signal: AbortSignal): Promise<void> {
    await this.#deps.clock.sleep(CONFLICT_PAUSE_MS, signal).catch(() => undefined);
  }

  async #step(
    agentUid: string,
    stored: StoredDeliveryState,
    { limit, ...at }: Pick<Search, 'after' | 'isExpected'> & { limit: number },
  ): Promise<Step> {
    const { state } = stored;
    const now = this.#now();
    const rejected = state.current.find(({ rejection }) => rejection !== undefined);
    if (rejected?.rejection !== undefined) {
      await this.#completeRejection(coordinatesOf(agentUid, rejected), rejected.rejection);
      return { kind: 'again' };
    }
    const current = inFlight(state, now);
    if (current.length >= limit)
      return { kind: 'none', dueTime: Math.min(...current.map(({ until }) => until)), isCertain: true };
    const found = await this.#search(agentUid, { state, now, ...at });
    if (found.kind === 'empty') return { kind: 'none', dueTime: undefined, isCertain: true, isEmpty: true };
    if (found.kind === 'waiting') return { kind: 'none', dueTime: nextDueTime(state), isCertain: found.isCertain };
    if (found.kind === 'candidate') return this.#begin(agentUid, stored, found.candidate);
    this.#skipped.remove(agentUid, found.sequence);
    const { previous } = found;
    if (previous !== undefined) await this.#states.update(agentUid, (latest) => remove(latest, previous));
    return { kind: 'again' };
  }

  /** A message of a session that got none in this round; when there is none, of any session in a new round. */
  async #search(agentUid: string, at: Omit<Search, 'served'>): Promise<SearchResult> {
    const { store } = this.#deps;
    const served = this.#rounds.served(agentUid);
    const found = await searchMessage(store, this.#skipped, agentUid, { ...at, served });
    if (found.kind !== 'waiting') return found;
    // A new round delivers nothing to sessions that wait for the end of a delivery.
    const busy = new Set(openDeliveries(at.state).map(({ session }) => session));
    if ([...served].every((session) => busy.has(session))) return found;
    this.#rounds.restart(agentUid);
    if (found.next !== undefined) return { kind: 'candidate', candidate: found.next };
    return searchMessage(store, this.#skipped, agentUid, { ...at, served: new Set() });
  }

  async #begin(agentUid: string, stored: StoredDeliveryState, candidate: Candidate): Promise<Step> {
    const { envelope, sequence, previous } = candidate;
    if (envelope === undefined || this.#isExhausted(previous)) return this.#rejectAtOnce(agentUid, stored, candidate);
    const { id: message, session } = envelope;
    const deliveries = (previous?.deliveries ?? 0) + 1;
    const now = this.#now();
    const carried = carriedOver(previous, now);
    const ackWaitMs = this.ackWaitMs(attempts({ deliveries, ...carried }));
    const next = { session, sequence, message, deliveries, until: now + ackWaitMs, ...carried };
    const at = coordinatesOf(agentUid, next);
    // Together: an acknowledgement writes its record before it changes the state, which the swap would notice.
    const [isWritten, hasEnded] = await Promise.all([
      this.#states.write(agentUid, begin(stored.state, next, now), stored.revision),
      this.#hasEnded(at),
    ]);
    if (!isWritten) return { kind: 'conflict' };
    if (hasEnded) return this.#skipEnded(at, previous);
    const deadline = laterBy(envelope.deadline, carried.parkedMs);
    if (Date.parse(deadline) <= this.#now()) {
      await this.reject(at, 'TEMPER_TIMEOUT', `the deadline of its chain, ${deadline}, has passed`);
      return { kind: 'again' };
    }
    this.#rounds.add(agentUid, session);
    const redelivery = previous === undefined ? {} : { redelivery: previous.cause ?? ('timeout' as const) };
    return { delivery: { message: { ...envelope, deadline }, coordinates: at, ackWaitMs, ...redelivery } };
  }

  #isExhausted(previous: OpenDelivery | undefined): boolean {
    return previous !== undefined && attempts(previous) >= this.#deps.rules.ackWaitsMs.length;
  }

  /** Rejects a message that no receiver gets: an invalid one, or one without a further delivery. */
  async #rejectAtOnce(
    agentUid: string,
    { state, revision }: StoredDeliveryState,
    { envelope, sequence, previous }: Candidate,
  ): Promise<Step> {
    const [deliveries, rejection] = envelope === undefined ? [1, INVALID] : [previous?.deliveries ?? 1, EXHAUSTED];
    const { id: message = '', session = '' } = envelope ?? {};
    const next = { session, sequence, message, deliveries, until: this.#now() };
    const at = coordinatesOf(agentUid, next);
    if (await this.#hasEnded(at)) return this.#skipEnded(at, previous);
    const isWritten = await this.#states.write(agentUid, begin(state, { ...next, rejection }, this.#now()), revision);
    return { kind: isWritten ? 'again' : 'conflict' };
  }

  /** The message of this sequence has ended, or another message with its id was acknowledged: the sender sent it twice. */
  async #hasEnded(at: DeliveryCoordinates): Promise<boolean> {
    if (at.message === '') return false;
    const ended = await this.#deps.store.readEnded(at.agentUid, at.message);
    return ended !== undefined && (ended.outcome === 'acked' || ended.sequence === at.streamSequence);
  }

  async #skipEnded(at: DeliveryCoordinates, previous: OpenDelivery | undefined): Promise<Step> {
    await this.#finish(at);
    if (previous !== undefined) await this.#states.update(at.agentUid, (state) => remove(state, previous));
    // The search has passed every message before one that it found by reading on; a redelivery may be ahead of the search.
    return previous === undefined ? { kind: 'ended', sequence: at.streamSequence } : { kind: 'again' };
  }

  /** Most deliveries last long enough anyway: then the stored state is read and not written. */
  async #guard(at: DeliveryCoordinates): Promise<void> {
    const until = this.#now() + ACK_GUARD_MS;
    await this.#states.update(at.agentUid, (state) => lastUntil(state, identityOf(at), until));
  }

  async #wasEndedBy(
    { agentUid, message, streamSequence, deliveries }: DeliveryCoordinates,
    outcome: EndedMessage['outcome'],
  ) {
    if (message === '') return false;
    const ended = await this.#deps.store.readEnded(agentUid, message);
    return ended?.outcome === outcome && ended.sequence === streamSequence && ended.deliveries === deliveries;
  }

  async #recordEnd(
    { agentUid, message, streamSequence, deliveries }: DeliveryCoordinates,
    outcome: EndedMessage['outcome'],
  ) {
    // An invalid message has no id under which a record could be stored, and no sender that repeats it.
    if (message === '') return;
    await this.#deps.store.writeEnded(agentUid, message, { sequence: streamSequence, deliveries, outcome });
  }

  /** Deletes the message of a recorded end, and its delivery. */
  async #finish(at: DeliveryCoordinates): Promise<void> {
    const { agentUid, streamSequence } = at;
    await Promise.all([
      this.#deps.store.deleteMessage(agentUid, streamSequence),
      this.#states.update(agentUid, (state) => remove(state, identityOf(at))),
    ]);
    this.#skipped.remove(agentUid, streamSequence);
    this.#deps.changed(agentUid);
  }

  async #completeRejection(
    at: DeliveryCoordinates,
    { code, reason }: { code: ErrorCode; reason: string },
  ): Promise<void> {
    const { agentUid, streamSequence, deliveries } = at;
    const input = { agentUid, streamSequence, deliveries, code, reason };
    // Without the message, another call has recorded its end.
    if (await this.#deps.store.writeDeadLetter(input)) await this.#recordEnd(at, 'rejected');
    await this.#finish(at);
  }
}

type Step =
  | { delivery: InboxDelivery }
  | { kind: 'again' | 'conflict' }
  | { kind: 'ended'; sequence: number }
  | { kind: 'none'; dueTime: number | undefined; isCertain: boolean; isEmpty?: true };

/** Nothing can be delivered, and no replica that lags has kept a message back. */
function certainNone(step: Exclude<Step, { delivery: InboxDelivery }>): Extract<Step, { kind: 'none' }> | undefined {
  return step.kind === 'none' && step.isCertain ? step : undefined;
}

const INVALID = { code: 'TEMPER_MESSAGE_INVALID', reason: 'inbox entry is not a valid message' } as const;
const EXHAUSTED = { code: 'TEMPER_MESSAGE_UNDELIVERED', reason: EXHAUSTED_REASON } as const;

/** The time for which a message waited for approvals does not count against its deadline. */
function laterBy(deadline: string, parkedMs = 0): string {
  return parkedMs === 0 ? deadline : new Date(Date.parse(deadline) + parkedMs).toISOString();
}

function isEndOfDelivery(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_NOT_FOUND') || isTemperError(error, 'TEMPER_DELIVERY_LOST');
}

function identityOf({ message, streamSequence, deliveries }: DeliveryCoordinates): DeliveryIdentity {
  return { sequence: streamSequence, message, deliveries };
}

function coordinatesOf(agentUid: string, { sequence, message, deliveries }: DeliveryIdentity): DeliveryCoordinates {
  return { agentUid, message, streamSequence: sequence, deliveries };
}
