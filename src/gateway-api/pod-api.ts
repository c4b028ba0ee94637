/**
 * The API between an agent pod and the gateway: JSON over HTTPS, the pod's token in `Authorization: Bearer`. Every error response has
 * the form of `ErrorBody`. Long polls respond with 204 when their wait ends. Mutations carry an `Idempotency-Key` header.
 *
 * The `*-schemas.ts` files beside this one describe each body once: type, check at the gateway and OpenAPI derive from the schema. This
 * file names the types only, so that a pod does not load the schema library.
 */
export type { Assignment } from './polls/assignment-schema.ts';
export type {
  CallApproval,
  CallApprovalRequest,
  DeliveryOutcome,
  NextMessageRequest,
  NoMessage,
  OutcomeContent,
  PodDelivery,
  SendMessageRequest,
  TaskRequest,
  UseApprovalRequest,
} from './delivery-schemas.ts';
export type {
  ChildState,
  KillRequest,
  KnownAgents,
  SpawnRequest,
  SpecialistRequest,
} from './children/child-schemas.ts';
export type { OwnScheduleList } from './schedules/schedule-schemas.ts';
export type { ErrorBody } from './error-schema.ts';
/** Header of a pod that reads lines of type `retry` in the answer of a model. */
export const ACCEPTED_LINES_HEADER = 'temper-accept-lines';
export const RETRY_LINES = 'retry';

/** Header of a pod that handles messages with a `call`. */
export const ACCEPTED_MESSAGES_HEADER = 'temper-accept-messages';
export const CALL_MESSAGES = 'call';

/**
 * Header of a request for the next message: the version of the assignment that the pod has. The request then ends too when the assignment
 * changes, and its response is never 204.
 */
export const ASSIGNMENT_VERSION_HEADER = 'temper-assignment-version';

export type { ModelStreamLine, StreamRequest } from './model-schemas.ts';
export type { PodReports, TracesRequest } from './report-schemas.ts';
export type { AppendRequest, MemoryWrite, SessionAppend } from './session-schemas.ts';
export type { DiscoveryRequest, DropToolRequest, RejectedToolRequest, ReviewRequest } from './tool-schemas.ts';
export type { ToolAuditModelCall, ToolAuditResult, ToolAuditWork } from './verification/tool-audit-schemas.ts';
export type { VerificationOutputs, VerificationWork } from './verification/verification-schemas.ts';

/** Request header: the delivery token of a call whose body does not have it. */
export const DELIVERY_TOKEN_HEADER = 'temper-delivery-token';
/** Response header of a call that a composed tool may make: the signature of its answer. */
export const ANSWER_SIGNATURE_HEADER = 'temper-answer-signature';

export const POD_API_PATHS = {
  /** GET `?wait=<seconds>&version=<known>`: `Assignment`, when its version differs from the known one; else 204. */
  assignment: '/v1/assignment',
  /** POST `NextMessageRequest`: `PodDelivery`, or `NoMessage` for a request with the version of an assignment, or 204. */
  nextMessage: '/v1/messages/next',
  /** POST `SendMessageRequest`: `Receipt`. */
  messages: '/v1/messages',
  /** POST `TaskRequest`: the state of a message that asked for an answer. */
  tasks: '/v1/tasks',
  /** POST `SpawnRequest`: `ChildState`. */
  children: '/v1/children',
  /** POST `SpecialistRequest`: `ChildState`. */
  specialists: '/v1/children/specialists',
  /** POST `KillRequest`: `ChildState`. */
  endChild: '/v1/children/end',
  /** POST `ListAgentsRequest`: `KnownAgents`. */
  listAgents: '/v1/agents/list',
  /** POST `CreateScheduleRequest`: `CreatedSchedule`. */
  schedules: '/v1/schedules',
  /** POST `DeleteScheduleRequest`: 204. */
  deleteSchedule: '/v1/schedules/delete',
  /** POST `ListSchedulesRequest`: `OwnScheduleList`. */
  listSchedules: '/v1/schedules/list',
  /** POST `PublishEventRequest`: `EventReceipt`. */
  events: '/v1/events',
  /** POST `SubscribeRequest`: `SubscriptionReceipt`. */
  subscriptions: '/v1/subscriptions',
  /** POST `UnsubscribeRequest`: `UnsubscribeReceipt`. */
  endSubscription: '/v1/subscriptions/end',
  /** POST `ListSubscriptionsRequest`: `SubscriptionList`. */
  listSubscriptions: '/v1/subscriptions/list',
  /** POST `CallApprovalRequest`: `CallApproval`. */
  approvals: '/v1/approvals',
  /** POST `UseApprovalRequest`: 204. */
  useApproval: '/v1/approvals/use',
  /** POST `DeliveryOutcome`. */
  deliveries: '/v1/deliveries',
  /** POST `StreamRequest`: one `ModelStreamLine` per line. */
  modelStream: '/v1/models/stream',
  /** POST `EmbedRequest`: `EmbedResponse`. */
  modelEmbed: '/v1/models/embed',
  /** POST `ReviewRequest`: `ForgeResult`. */
  forgeReview: '/v1/forge/review',
  /** POST `RejectedToolRequest`: 204. */
  forgeRejected: '/v1/forge/rejected',
  /** POST `DropToolRequest`: 204, also when the session does not have the tool. */
  forgeDrop: '/v1/forge/drop',
  /** GET `/v1/sessions/{id}`: `SessionHistory`. POST `…/{id}/items` `AppendRequest`: `AppendResponse`. DELETE `…/{id}`. GET `…/{id}/tools`: `RegisteredTools`. */
  sessions: '/v1/sessions',
  /** GET and PUT `/v1/memory/{key}`: `MemoryValue`; DELETE: `MemoryDeleted`; GET `?query=&limit=`: `MemoryHits`. */
  memory: '/v1/memory',
  /** GET `?prefix=&limit=`: `MemoryKeys`. */
  memoryKeys: '/v1/memory-keys',
  /** POST `PodReports`: 204. */
  reports: '/v1/reports',
  /** POST `TracesRequest`: 204. */
  traces: '/v1/traces',
  /** POST `BrokeredCallRequest`: `BrokeredCallResult`. */
  brokeredCalls: '/v1/tools/call',
  /** POST parts, `BrokeredCallRequest` and bytes: `BrokeredCallResult`. */
  attachedCalls: '/v1/tools/call-with-attachment',
  /** POST `RepositoryReadRequest`: parts, `BrokeredCallResult` and perhaps a pack. */
  repositoryReads: '/v1/repositories/read',
  /** POST `DiscoveryRequest`: `DiscoveryResponse`. */
  discoverySearch: '/v1/discovery/search',
  /** POST `LoadSkillRequest`: `LoadedSkill`. */
  loadSkill: '/v1/skills/load',
  /** POST `SkillResourceRequest`: `SkillResource`. */
  skillResource: '/v1/skills/resource',
  /** GET `?wait=<seconds>`: `VerificationWork`, `ToolAuditWork` or 204. Only for verifier pods. */
  verification: '/v1/verification',
  /** POST `VerificationOutputs`: 204. Only for verifier pods. */
  verificationOutputs: '/v1/verification/outputs',
  /** POST `ToolAuditResult`: 204. Only for verifier pods. */
  verificationAudit: '/v1/verification/audit',
  /** POST `ToolAuditModelCall`: one `ModelStreamLine` per line. Only for verifier pods with an audit. */
  verificationModelStream: '/v1/verification/models/stream',
} as const;
