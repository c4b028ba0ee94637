import type { ErrorCode } from '../lib/error-codes.ts';

/** How a task of a peer ended. */
export const PEER_OUTCOMES = ['Completed', 'Rejected', 'Failed', 'Canceled'] as const;
export type PeerOutcome = (typeof PEER_OUTCOMES)[number];

export interface PeerTaskEnd {
  readonly outcome: PeerOutcome;
  /** Why there is no answer. */
  readonly code?: ErrorCode;
  /** RFC 3339. */
  readonly at: string;
}

/** A message of a peer, an agent or a program that calls over A2A. */
export interface PeerTask {
  /** The id of the message, and of the task. */
  readonly message: string;
  /** The digest that stands for the caller. */
  readonly caller: string;
  /** The context as the caller knows it; with the caller it names the session. */
  readonly context: string;
  /** RFC 3339. */
  readonly time: string;
  /** The beginning of the text. */
  readonly text: string;
  /** Digest of the whole message: another message with the same id is refused. */
  readonly digest: string;
  readonly ended?: PeerTaskEnd;
}

/** No name of an agent has a `_`, so no session of a message of an agent is one of a peer. */
const PREFIX = 'a2a_';
const CALLER = /^[0-9a-f]{32}$/;

/** The session of a context of a caller. Contexts of two callers are two sessions, whatever their ids are. */
export function peerSession({ caller, context }: Pick<PeerTask, 'caller' | 'context'>): string {
  return `${PREFIX}${caller}.${context}`;
}

/** The caller of a session of a peer; undefined for another session. */
export function callerOfSession(session: string): string | undefined {
  const caller = session.startsWith(PREFIX) ? session.slice(PREFIX.length).split('.', 1)[0] : undefined;
  return caller !== undefined && CALLER.test(caller) ? caller : undefined;
}
