import { deliveryLost } from '../../bus/delivery-end.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';

/** A message of one session that was delivered and has not ended. */
export interface OpenDelivery {
  session: string;
  /** Stream sequence of the message. */
  sequence: number;
  /** Id of the message; empty for an inbox entry that is not a valid message. */
  message: string;
  /** 1 for the first. */
  deliveries: number;
  /** Epoch milliseconds. The message is redelivered from then on. */
  until: number;
  /** Why it is redelivered; absent when its acknowledgement timeout passes. */
  cause?: 'retry' | 'podDeleted' | 'parked';
  /** Epoch milliseconds: since when the message waits for an approval. */
  parkedAt?: number;
  /** Milliseconds for which earlier deliveries of the message waited for approvals; its deadline moves by them. */
  parkedMs?: number;
  /** Deliveries that ended because the message was parked, and those before them: they do not count as failed attempts. */
  uncounted?: number;
}

/** Why a message is redelivered. */
export type RedeliveryReason = 'timeout' | NonNullable<OpenDelivery['cause']>;

export interface Rejection {
  code: ErrorCode;
  /** For users; not printable yet. */
  reason: string;
}

export interface CurrentDelivery extends OpenDelivery {
  /** The message is rejected: the gateway that reads this moves it to the dead letters. */
  rejection?: Rejection;
}

/**
 * The deliveries of one agent that have not ended: those in flight, at most one per session, and the messages of sessions that wait for
 * their redelivery. A session of an open delivery gets no other message, all other sessions do.
 */
export interface DeliveryState {
  current: readonly CurrentDelivery[];
  waiting: readonly OpenDelivery[];
}

/** Identifies one delivery of a message. */
export type DeliveryIdentity = Pick<OpenDelivery, 'sequence' | 'message' | 'deliveries'>;

export const EMPTY_STATE: DeliveryState = { current: [], waiting: [] };

/**
 * While so many sessions of an agent wait for a redelivery, no further session gets a message. Bounds the size of a state and the
 * cost of a search: an agent for which every message fails does not read its whole inbox for each attempt.
 */
export const MAX_OPEN_SESSIONS = 64;

/** The deliveries in flight: those whose acknowledgement timeout has not passed. */
export function inFlight({ current }: DeliveryState, now: number): readonly CurrentDelivery[] {
  return current.filter(({ rejection, until }) => rejection === undefined && until > now);
}

/** This delivery, while it is in flight or its acknowledgement timeout has passed without another one. */
export function findCurrent({ current }: DeliveryState, at: DeliveryIdentity): CurrentDelivery | undefined {
  return current.find((one) => isSame(one, at));
}

export function openDeliveries({ current, waiting }: DeliveryState): readonly OpenDelivery[] {
  return [...waiting, ...current];
}

/** The oldest message that is to be redelivered now. */
export function oldestDue(state: DeliveryState, now: number): OpenDelivery | undefined {
  return openDeliveries(state)
    .filter(({ until }) => until <= now)
    .reduce<OpenDelivery | undefined>(
      (oldest, one) => (oldest && oldest.sequence < one.sequence ? oldest : one),
      undefined,
    );
}

/** When the next waiting message is to be redelivered. */
export function nextDueTime(state: DeliveryState): number | undefined {
  const times = openDeliveries(state).map(({ until }) => until);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Starts a delivery. Messages whose acknowledgement timeout has passed wait for their redelivery. */
export function begin(state: DeliveryState, next: CurrentDelivery, now: number): DeliveryState {
  const stays = new Set<OpenDelivery>(inFlight(state, now));
  const others = openDeliveries(state).filter(({ sequence }) => sequence !== next.sequence);
  return {
    current: [...others.filter((one) => stays.has(one)), next],
    waiting: others.filter((one) => !stays.has(one)).map(withoutRejection),
  };
}

/** Moves the end of the acknowledgement timeout. Throws TEMPER_DELIVERY_LOST or TEMPER_NOT_FOUND for another delivery. */
export function extend(state: DeliveryState, at: DeliveryIdentity, until: number): DeliveryState {
  return replaceCurrent(state, { ...currentOf(state, at), until });
}

/** The state itself when the acknowledgement timeout ends at `until` or later, else one where it ends then. Throws like `extend`. */
export function lastUntil(state: DeliveryState, at: DeliveryIdentity, until: number): DeliveryState {
  const current = currentOf(state, at);
  return current.until >= until ? state : replaceCurrent(state, { ...current, until });
}

/** Ends a delivery; the message is redelivered at `until`. A repeated call changes nothing. Throws like `extend`. */
export function retryAt(
  state: DeliveryState,
  at: DeliveryIdentity,
  until: number,
  cause: NonNullable<OpenDelivery['cause']>,
): DeliveryState {
  if (state.waiting.some((one) => isSame(one, at))) return state;
  return moveToWaiting(state, { ...currentOf(state, at), until, cause });
}

/**
 * Ends a delivery whose message waits for an approval: it is redelivered when `resume` is called, at the latest at `until`. A repeated
 * call changes nothing. Throws like `extend`.
 */
export function park(state: DeliveryState, at: DeliveryIdentity, until: number, now: number): DeliveryState {
  if (state.waiting.some((one) => isSame(one, at))) return state;
  const current = currentOf(state, at);
  return moveToWaiting(state, { ...current, until, cause: 'parked', parkedAt: now, uncounted: current.deliveries });
}

/** Redelivers a parked message now. Changes nothing for another one. */
export function resume(state: DeliveryState, message: string, now: number): DeliveryState {
  const isParked = (one: OpenDelivery): boolean => one.message === message && isWaitingParked(one, now);
  if (!state.waiting.some(isParked)) return state;
  return { ...state, waiting: state.waiting.map((one) => (isParked(one) ? { ...one, until: now } : one)) };
}

/** The messages that wait for an approval. */
export function parkedDeliveries({ waiting }: DeliveryState, now: number): readonly OpenDelivery[] {
  return waiting.filter((one) => isWaitingParked(one, now));
}

function isWaitingParked({ parkedAt, until }: OpenDelivery, now: number): boolean {
  return parkedAt !== undefined && until > now;
}

/** What the next delivery of a message takes over from the one before. */
export function carriedOver(
  previous: OpenDelivery | undefined,
  now: number,
): Pick<OpenDelivery, 'parkedMs' | 'uncounted'> {
  if (previous === undefined) return {};
  const { parkedAt, parkedMs = 0, uncounted } = previous;
  const total = parkedMs + (parkedAt === undefined ? 0 : Math.max(0, now - parkedAt));
  return { ...(total === 0 ? {} : { parkedMs: total }), ...(uncounted === undefined ? {} : { uncounted }) };
}

/** Attempts at a message that ended neither with its end nor with an approval to wait for. */
export function attempts({ deliveries, uncounted = 0 }: Pick<OpenDelivery, 'deliveries' | 'uncounted'>): number {
  return deliveries - uncounted;
}

/** Decides that the message becomes a dead letter. A repeated call changes nothing. Throws like `extend`. */
export function reject(state: DeliveryState, at: DeliveryIdentity, rejection: Rejection): DeliveryState {
  if (findCurrent(state, at)?.rejection !== undefined) return state;
  return replaceCurrent(state, { ...currentOf(state, at), rejection });
}

/** Removes a delivery whose message has ended. A later delivery of the message stays. */
export function remove(state: DeliveryState, at: DeliveryIdentity): DeliveryState {
  const isOther = (one: OpenDelivery): boolean => !isSame(one, at);
  if (openDeliveries(state).every(isOther)) return state;
  return { current: state.current.filter(isOther), waiting: state.waiting.filter(isOther) };
}

function replaceCurrent({ current, waiting }: DeliveryState, next: CurrentDelivery): DeliveryState {
  return { current: current.map((one) => (one.sequence === next.sequence ? next : one)), waiting };
}

function moveToWaiting({ current, waiting }: DeliveryState, next: OpenDelivery): DeliveryState {
  return { current: current.filter(({ sequence }) => sequence !== next.sequence), waiting: [...waiting, next] };
}

function currentOf(state: DeliveryState, at: DeliveryIdentity): CurrentDelivery {
  const current = findCurrent(state, at);
  if (current !== undefined && current.rejection === undefined) return current;
  if (openDeliveries(state).some(({ sequence }) => sequence === at.sequence)) throw deliveryLost();
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    'no delivery of this message is open: it has ended, its agent was deleted, or NATS lost its store',
  );
}

function isSame(one: DeliveryIdentity, other: DeliveryIdentity): boolean {
  return one.sequence === other.sequence && one.deliveries === other.deliveries && one.message === other.message;
}

function withoutRejection(delivery: CurrentDelivery): OpenDelivery {
  const { rejection: _, ...open } = delivery;
  return open;
}
