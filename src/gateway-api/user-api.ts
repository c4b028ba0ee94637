/**
 * The API between clients of users and the gateway, below `/v1/users/namespaces/{namespace}`: JSON over HTTPS through the API server's
 * service proxy. The proxy consumes the header `Authorization`, so `Temper-Token` carries the token of `temper-users`.
 *
 * - POST `…/agents/{agent}/messages`: `UserMessageRequest`, `UserMessageReceipt`; idempotent by `Idempotency-Key`.
 * - GET `…/agents/{agent}/sessions/{session}/events?after=<seq>&skip=<skip>&message=<id>&follow=true`: one `SessionStreamLine` per line.
 * - POST `…/agents/{agent}/mcp`: a message of the Model Context Protocol, for programs that speak it.
 * - GET `…/agents/{agent}/sessions`: `SessionSummary[]`, newest first.
 * - DELETE `…/agents/{agent}/sessions/{session}?endWork=true`: `SessionCloseReceipt`; idempotent. 409 while messages of it have not ended, without `endWork`.
 * - GET `…/agents/{agent}/tools?session=`: `SessionToolSummary[]`.
 * - GET `…/agents/{agent}/usage` and `…/policies/{policy}/usage`: `UsageReport`.
 * - GET `…/charges?by=&since=` and `…/agents/{agent}/charges?by=&since=`: `UsageBreakdown`.
 * - POST `…/agents/{agent}/ratings`: `TaskRatingRequest`, `TaskRatingReceipt`; the last rating of a task counts.
 * - POST `…/agents/{agent}/tool-audits`: `ToolAuditRequest`, `ToolAuditState`; GET `…/tool-audits/{digest}?wait=&runs=`: `ToolAuditState`.
 * - GET `…/agents/{agent}/trust`: `TrustReport`.
 * - GET `…/deadletters`: `DeadLetterSummary[]`; POST `…/deadletters/{id}/retry` redelivers, DELETE `…/deadletters/{id}` deletes.
 * - GET `…/schedules?agent=`: `UserScheduleList`; POST `…/agents/{agent}/schedules/trigger`, `pause` and `resume`: `TriggeredRun` or 204.
 * - GET `…/events`: `EventSummary[]`, the history of the events of the namespace, oldest first.
 * - GET `…/top`: `TopAgent[]`.
 * - GET `…/audit?after=<seq>&limit=`: `AuditPage`, the links of the provenance chain with the records of the namespace.
 *
 * `user-schemas.ts` describes each body once. This file names the types only, so that a client does not load the schema library.
 */
export type {
  DeadLetterSummary,
  SessionCloseReceipt,
  SessionStreamLine,
  SessionSummary,
  SessionToolSummary,
  TopAgent,
  TrustReport,
  UsageBreakdown,
  UsageReport,
  UserMessageReceipt,
  UserMessageRequest,
} from './user-schemas.ts';
export type { ToolAuditRequest, ToolAuditState } from './verification/tool-audit-schemas.ts';
export type { TriggeredRun, UserScheduleList } from './schedules/user-schedule-schemas.ts';
export type { AuditPage } from './provenance/audit-schemas.ts';

export const USER_TOKEN_HEADER = 'temper-token';
export const USERS_PATH = '/v1/users/namespaces';
