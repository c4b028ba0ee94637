/**
 * What people's tools and the gateway say to each other, below `/v1/people/namespaces/{namespace}`: JSON over HTTPS through the API
 * server's service proxy, which keeps `Authorization` for itself; so the token of `temper-people` stands in `Temper-Token`.
 */
import type { ErrorCode } from '../lib/error-codes.ts';
import type { StampedEvent } from '../tools/events.ts';

export const TOKEN_HEADER = 'temper-token';
export const PEOPLE_PATH = '/v1/people/namespaces';

/** POST `…/agents/{agent}/messages`; `Idempotency-Key` makes a second one the same message. */
export interface PersonMessage {
  text: string;
  /** A new session when absent. */
  session?: string;
}
export interface PersonReceipt {
  id: string;
  session: string;
  duplicate: boolean;
  /** Does the agent have a pod now? If not it is woken. */
  awake: boolean;
  /** The last line of the session before this message: what to follow it from. */
  after: number;
  /** What logs and traces call everything done for the message; absent from gateways that know none. */
  traceId?: string;
}

/** GET `…/agents/{agent}/sessions/{session}/events?after=<seq>&message=<id>&follow=true`: one a line, empty lines keep it alive. */
export type FollowLine =
  | { seq: number; kind: 'event'; event: StampedEvent }
  /** The answer to a message, from the gateway itself; with `message` given it is the last line. */
  | { seq: number; kind: 'reply'; message: string; text: string; ending: 'complete' | 'cut' | 'refusal' }
  | { seq: number; kind: 'failed'; message: string; code: ErrorCode; text: string };

/** GET `…/agents/{agent}/sessions`, newest first. */
export interface SessionSummary {
  session: string;
  /** RFC 3339. */
  openedAt: string;
  lastUsedAt: string;
  items: number;
  tainted: boolean;
}

/** GET `…/agents/{agent}/usage` and `…/policies/{policy}/usage`. */
export interface UsageReport {
  windows: {
    window: 'hour' | 'day' | 'month';
    inputTokens: number;
    outputTokens: number;
    costMicros: number;
    /** Reserved and not settled. */
    inFlightTokens: number;
  }[];
  /** What the quotas allow, by their field. */
  limits: Record<string, number>;
}

/** GET `…/deadletters`; POST `…/deadletters/{id}/retry` sends it again, DELETE `…/deadletters/{id}` drops it. */
export interface DeadLetter {
  id: string;
  agent: string;
  session: string;
  time: string;
  deliveries: number;
  code: string;
  message: string;
  /** The first 200 characters, printable. */
  excerpt: string;
}

/** GET `…/top`: live counters. */
export interface TopAgent {
  agent: string;
  waiting: number;
  inFlight: number;
  deadLetters: number;
  tokensThisHour: number;
  /** RFC 3339; absent when it never spoke. */
  lastSeen?: string;
}

/** GET `…/agents/{agent}/tools?session=`: tools of a session, which are no objects. */
export interface SessionToolSummary {
  name: string;
  digest: string;
  session: string;
  uses: number;
  /** RFC 3339. */
  acceptedAt: string;
}
