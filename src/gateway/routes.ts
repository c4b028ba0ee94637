import { a2aRoutes } from './a2a/routes.ts';
import { approvalRoutes } from './approvals/routes.ts';
import { assignmentRoutes } from './pods/assignment.ts';
import { reportRoutes } from './pods/reports.ts';
import { deliveryOutcomeRoutes } from './delivery/outcome.ts';
import { nextMessageRoutes } from './delivery/next.ts';
import { eventRoutes } from './events/routes.ts';
import { brokeredRoutes } from './brokered/routes.ts';
import { clientCallRoutes } from './client-calls/routes.ts';
import { repositoryRoutes } from './git/routes.ts';
import { childRoutes } from './children/routes.ts';
import { ownScheduleRoutes } from './schedules/routes.ts';
import { userScheduleRoutes } from './schedules/user-routes.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { messageRoutes } from './pods/messages.ts';
import { userEventRoutes } from './users/events.ts';
import { userCloseSessionRoutes } from './users/close-session.ts';
import { userDeadLetterRoutes } from './users/dead-letters.ts';
import { userAuditRoutes } from './users/audit.ts';
import { userRatingRoutes } from './users/ratings.ts';
import { userReactivationRoutes } from './users/reactivations.ts';
import { userToolAuditRoutes } from './users/tool-audits.ts';
import { userTrustRoutes } from './users/trust.ts';
import { userStreamRoutes } from './users/stream.ts';
import { userReportRoutes } from './users/reports.ts';
import { userMessageRoutes } from './users/messages.ts';
import type { RouteModule } from './http/routes.ts';
import { verificationRoutes } from './promotion/verification-routes.ts';
import { traceRoutes } from './tracing/routes.ts';
import { specialistRoutes } from './children/specialist.ts';
import { egressRoutes } from './egress/routes.ts';
import { skillRoutes } from './discovery/skill-routes.ts';
import { discoveryRoutes } from './discovery/routes.ts';
import { modelRoutes } from './models/routes.ts';
import { memoryRoutes } from './pods/memory.ts';
import { sessionRoutes } from './pods/sessions.ts';
import { reviewRoutes } from './review/routes.ts';
import { auditModelRoutes } from './tool-audits/model-route.ts';

/** Routes for assignments, deliveries, reports, traces, verifiers and users. Those that need models, a ledger or a judge are in `moduleRoutes`. */
export const CORE_ROUTES: readonly RouteModule[] = [
  assignmentRoutes,
  nextMessageRoutes,
  deliveryOutcomeRoutes,
  approvalRoutes,
  messageRoutes,
  childRoutes,
  ownScheduleRoutes,
  eventRoutes,
  brokeredRoutes,
  repositoryRoutes,
  reportRoutes,
  traceRoutes,
  verificationRoutes,
  userMessageRoutes,
  userStreamRoutes,
  userReportRoutes,
  userEventRoutes,
  userCloseSessionRoutes,
  userDeadLetterRoutes,
  userRatingRoutes,
  userTrustRoutes,
  userReactivationRoutes,
  userToolAuditRoutes,
  userAuditRoutes,
  userScheduleRoutes,
  a2aRoutes,
  clientCallRoutes,
  mcpRoutes,
  skillRoutes,
];

export interface ModuleRouteDeps {
  models: Parameters<typeof modelRoutes>[0];
  review: Parameters<typeof reviewRoutes>[0];
  sessions: Parameters<typeof sessionRoutes>[0];
  memory: Parameters<typeof memoryRoutes>[0];
  discovery: Parameters<typeof discoveryRoutes>[0];
}

/** The routes that need models, a ledger or a judge. */
export function moduleRoutes({ models, review, sessions, memory, discovery }: ModuleRouteDeps): RouteModule[] {
  return [
    modelRoutes(models),
    auditModelRoutes(models),
    reviewRoutes(review),
    sessionRoutes(sessions),
    specialistRoutes(models),
    egressRoutes(models),
    memoryRoutes(memory),
    discoveryRoutes(discovery),
  ];
}
