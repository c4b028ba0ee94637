/**
 * What an agent pod and the gateway say to each other: JSON over HTTPS, the pod's token in `Authorization: Bearer`. Every refusal has
 * the form of `WireError`. Long polls answer 204 when their time is over. Mutations carry an `Idempotency-Key` header.
 */
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { Draft, Envelope } from '../bus/port.ts';
import type { DiscoveryQuery } from '../discovery/port.ts';
import type { Candidate, Refused } from '../forge/types.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { ModelEvent, ModelMessage, ModelRequest } from '../models/port.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { ReportedSpan } from '../telemetry/reported-span.ts';
import type { StampedEvent } from '../tools/events.ts';

export const PATHS = {
  /** GET `?wait=<seconds>&version=<known>`: `Assignment`, when it differs from the version known. */
  assignment: '/v1/assignment',
  /** POST `NextRequest`: `WireDelivery` or 204. */
  nextMessage: '/v1/messages/next',
  /** POST `SendRequest`: `Receipt`. */
  messages: '/v1/messages',
  /** POST `LeaseAnswer`. */
  leases: '/v1/leases',
  /** POST `StreamRequest`: lines of `StreamLine`. */
  modelStream: '/v1/models/stream',
  /** POST `{texts}`: `{vectors}`. */
  modelEmbed: '/v1/models/embed',
  /** POST `ReviewRequest`: `ForgeResult`. */
  forgeReview: '/v1/forge/review',
  /** POST `RejectedRequest`: 204. */
  forgeRejected: '/v1/forge/rejected',
  /** GET `/v1/sessions/{id}`: `History`. POST `…/{id}/items`: `{seq}`. DELETE `…/{id}`. GET `…/{id}/tools`: `RegisteredTool[]`. */
  sessions: '/v1/sessions',
  /** GET and PUT `/v1/memory/{key}`; GET `?query=&limit=`. */
  memory: '/v1/memory',
  /** POST `Claims`: 204. */
  claims: '/v1/claims',
  /** POST `TracesRequest`: 204. */
  traces: '/v1/traces',
  /** POST `DiscoveryRequest`: `DiscoveryAnswer`. */
  discoverySearch: '/v1/discovery/search',
} as const;

export interface WireError {
  error: { code: ErrorCode; message: string; retryAfterMilliseconds?: number };
}

/** Who the pod is. A warm pod gets it when it is bound; a pod that is bound gets it again whenever something in it changes. */
export interface Assignment {
  /** Opaque; differs whenever anything below differs. */
  version: string;
  agent: { name: string; namespace: string; uid: string; spec: AgentSpec };
  policy: { name: string; spec: TrustPolicySpec };
  level: string;
  /** By the name manifests use, for each model the agent may use: what it really is. */
  models: Record<string, { resolved: string; contextTokens: number }>;
  /** Suspended agents get no messages, model calls or reviews. */
  suspended: boolean;
}

export interface NextRequest {
  waitSeconds: number;
  /** Until a process has had its first answer: whatever its pod held before, it holds no more. */
  restarted?: boolean;
}

/** The lease is opaque to the pod. It holds, signed, everything the gateway copies into what the pod does under it. */
export interface WireDelivery {
  message: Envelope;
  lease: string;
  /** After so long without an answer or an extension the message is delivered again. */
  leaseMilliseconds: number;
}

/** `extend` while the work goes on; `ack` is the end and carries the reply. */
export type LeaseAnswer =
  | { lease: string; action: 'ack'; reply: string; ending: 'complete' | 'cut' | 'refusal' }
  | { lease: string; action: 'retry'; afterMilliseconds: number }
  | { lease: string; action: 'reject'; code: ErrorCode; message: string }
  | { lease: string; action: 'extend' };

/** From an agent: root, depth and deadline are those of the lease, one deeper. */
export interface SendRequest {
  lease: string;
  draft: Draft;
}

/** Model calls are made for a message, whose lease says what they are charged to. */
export interface StreamRequest {
  lease: string;
  request: ModelRequest;
}

/** A model's events as they come; the last line is `end` or `error`. Empty lines keep the connection alive. */
export type StreamLine = ModelEvent | { type: 'error'; code: ErrorCode; message: string };

export interface ReviewRequest {
  lease: string;
  candidate: Candidate;
  authorModel: string;
}

export interface RejectedRequest {
  lease: string;
  refused: Refused;
  authorModel: string;
}

export interface AppendRequest {
  lease: string;
  afterSeq: number;
  items: ModelMessage[];
  tainted?: boolean;
}

export interface MemoryPut {
  value: Json;
}

/** What the agent may use in the session of the lease. */
export interface DiscoveryRequest extends DiscoveryQuery {
  lease: string;
}

/** What the pod says of itself: kept as claimed, never as observed. Events feed who follows the session. */
export interface Claims {
  events?: StampedEvent[];
  audit?: AuditRecord[];
  uses?: ToolUse[];
}

/**
 * What the pod recorded of its work on one message, when the `traceparent` of its delivery is sampled. Calls under a lease name the span
 * they are part of in the header `traceparent`.
 */
export interface TracesRequest {
  lease: string;
  spans: ReportedSpan[];
}
