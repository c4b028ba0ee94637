/**
 * The API between an agent pod and the gateway: JSON over HTTPS, the pod's token in `Authorization: Bearer`. Every error response has
 * the form of `ErrorBody`. Long polls respond with 204 when their wait ends. Mutations carry an `Idempotency-Key` header.
 */
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { FinishReason, MessageDraft, Envelope } from '../bus/port.ts';
import type { DiscoveryQuery } from '../discovery/port.ts';
import type { ToolCandidate, RefusedTool } from '../forge/types.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { ModelEvent, ModelMessage, ModelRequest } from '../models/port.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { ReportedSpan } from '../telemetry/reported-span.ts';
import type { StampedEvent } from '../tools/events.ts';

export const POD_API_PATHS = {
  /** GET `?wait=<seconds>&version=<known>`: `Assignment`, when its version differs from the known one; else 204. */
  assignment: '/v1/assignment',
  /** POST `NextMessageRequest`: `PodDelivery` or 204. */
  nextMessage: '/v1/messages/next',
  /** POST `SendMessageRequest`: `Receipt`. */
  messages: '/v1/messages',
  /** POST `DeliveryOutcome`. */
  deliveries: '/v1/deliveries',
  /** POST `StreamRequest`: one `ModelStreamLine` per line. */
  modelStream: '/v1/models/stream',
  /** POST `{texts}`: `{vectors}`. */
  modelEmbed: '/v1/models/embed',
  /** POST `ReviewRequest`: `ForgeResult`. */
  forgeReview: '/v1/forge/review',
  /** POST `RejectedToolRequest`: 204. */
  forgeRejected: '/v1/forge/rejected',
  /** GET `/v1/sessions/{id}`: `History`. POST `…/{id}/items`: `{seq}`. DELETE `…/{id}`. GET `…/{id}/tools`: `RegisteredTool[]`. */
  sessions: '/v1/sessions',
  /** GET and PUT `/v1/memory/{key}`; GET `?query=&limit=`. */
  memory: '/v1/memory',
  /** POST `PodReports`: 204. */
  reports: '/v1/reports',
  /** POST `TracesRequest`: 204. */
  traces: '/v1/traces',
  /** POST `DiscoveryRequest`: `DiscoveryAnswer`. */
  discoverySearch: '/v1/discovery/search',
} as const;

export interface ErrorBody {
  error: { code: ErrorCode; message: string; retryAfterMs?: number };
}

/** The agent the pod is bound to. A warm pod receives it when it is bound; a bound pod receives it after each change. */
export interface Assignment {
  /** Opaque; changes with any member below. */
  version: string;
  agent: { name: string; namespace: string; uid: string; spec: AgentSpec };
  policy: { name: string; spec: TrustPolicySpec };
  level: string;
  /** The real model of each model name in the manifests that the agent may use. */
  models: Record<string, { resolved: string; contextTokens: number }>;
  /** A suspended agent receives no messages, model calls or reviews. */
  suspended: boolean;
}

export interface NextMessageRequest {
  waitSeconds: number;
  /** Set until the process has received its first response: the gateway then redelivers the message that the pod's previous process had in flight. */
  restarted?: boolean;
}

/** `deliveryToken` is the delivery token: opaque to the pod, signed, with every member that the gateway copies into actions of this delivery. */
export interface PodDelivery {
  message: Envelope;
  deliveryToken: string;
  /** Acknowledgement timeout: without an outcome or an extension by then the message is redelivered. */
  ackTimeoutMs: number;
}

/** The outcome of a delivery: `ack` with the reply, `retry`, or `reject`; `extend` restarts the acknowledgement timeout. */
export type DeliveryOutcome =
  | { deliveryToken: string; action: 'ack'; reply: string; finishReason: FinishReason }
  | { deliveryToken: string; action: 'retry'; delayMs: number }
  | { deliveryToken: string; action: 'reject'; code: ErrorCode; message: string }
  | { deliveryToken: string; action: 'extend' };

/** A message of an agent: the gateway takes root and deadline from the delivery token, and its depth plus one. */
export interface SendMessageRequest {
  deliveryToken: string;
  draft: MessageDraft;
}

/** A model call for a message. The delivery token determines the accounts it is charged to. */
export interface StreamRequest {
  deliveryToken: string;
  request: ModelRequest;
}

/** A model's events as they arrive; the last line is `end` or `error`. Empty lines are keep-alive. */
export type ModelStreamLine = ModelEvent | { type: 'error'; code: ErrorCode; message: string };

export interface ReviewRequest {
  deliveryToken: string;
  candidate: ToolCandidate;
  authorModel: string;
}

export interface RejectedToolRequest {
  deliveryToken: string;
  refused: RefusedTool;
  authorModel: string;
}

export interface AppendRequest {
  deliveryToken: string;
  afterSeq: number;
  items: ModelMessage[];
  tainted?: boolean;
}

export interface MemoryPut {
  value: Json;
}

/** A search for capabilities in the session of the delivery. */
export interface DiscoveryRequest extends DiscoveryQuery {
  deliveryToken: string;
}

/** The pod's reports about itself: stored as reported evidence, never as observed. Events go to clients that follow the session. */
export interface PodReports {
  events?: StampedEvent[];
  audit?: AuditRecord[];
  uses?: ToolUse[];
}

/**
 * The spans the pod recorded for one message, when the `traceparent` of its delivery is sampled. Calls with a delivery token state their
 * parent span in the header `traceparent`.
 */
export interface TracesRequest {
  deliveryToken: string;
  spans: ReportedSpan[];
}
