/**
 * The API between clients of users and the gateway, below `/v1/users/namespaces/{namespace}`: JSON over HTTPS through the API server's
 * service proxy. The proxy consumes the header `Authorization`, so `Temper-Token` carries the token of `temper-users`.
 */
import type { ErrorCode } from '../lib/error-codes.ts';
import type { FinishReason } from '../bus/port.ts';
import type { StampedEvent } from '../tools/events.ts';

export const USER_TOKEN_HEADER = 'temper-token';
export const USERS_PATH = '/v1/users/namespaces';

/** POST `…/agents/{agent}/messages`; idempotent by `Idempotency-Key`. */
export interface UserMessageRequest {
  text: string;
  /** Absent: the gateway opens a new session. */
  session?: string;
}
export interface UserMessageReceipt {
  id: string;
  session: string;
  duplicate: boolean;
  /** The agent has a pod now. Otherwise the gateway wakes it up. */
  podBound: boolean;
  /** Sequence of the session's last line before this message; pass it as `after` to read from this message on. */
  after: number;
  /** Trace id of the message in logs and traces. Older gateways omit it. */
  traceId?: string;
}

/** GET `…/agents/{agent}/sessions/{session}/events?after=<seq>&message=<id>&follow=true`: one JSON value per line, empty lines as keep-alive. */
export type SessionStreamLine =
  | { seq: number; kind: 'event'; event: StampedEvent }
  /** The reply to a message, written by the gateway; the last line when the request names this message. */
  | { seq: number; kind: 'reply'; message: string; text: string; finishReason: FinishReason }
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
    /** Reserved and not committed. */
    inFlightTokens: number;
  }[];
  /** Limits by quota field. */
  limits: Record<string, number>;
}

/** GET `…/deadletters`; POST `…/deadletters/{id}/retry` redelivers the message, DELETE `…/deadletters/{id}` deletes it. */
export interface DeadLetterSummary {
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
  /** RFC 3339, last use of a session; absent when the agent has no session. */
  lastSeen?: string;
}

/** GET `…/agents/{agent}/tools?session=`: tools of sessions, which are not Kubernetes objects. */
export interface SessionToolSummary {
  name: string;
  digest: string;
  session: string;
  uses: number;
  /** RFC 3339. */
  acceptedAt: string;
}
