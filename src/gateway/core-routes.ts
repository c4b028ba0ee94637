import { a2aRoutes } from './a2a/routes.ts';
import { approvalRoutes } from './approvals/routes.ts';
import { assignmentRoutes } from './pods/assignment.ts';
import { reportRoutes } from './pods/reports.ts';
import { deliveryOutcomeRoutes } from './delivery/outcome.ts';
import { nextMessageRoutes } from './delivery/next.ts';
import { eventRoutes } from './events/routes.ts';
import { childRoutes } from './children/routes.ts';
import { ownScheduleRoutes } from './schedules/routes.ts';
import { userScheduleRoutes } from './schedules/user-routes.ts';
import { messageRoutes } from './pods/messages.ts';
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

/** Routes for assignments, deliveries, reports, traces, verifiers and users. Routes that need models, a ledger or a judge are added separately. */
export const CORE_ROUTES: readonly RouteModule[] = [
  assignmentRoutes,
  nextMessageRoutes,
  deliveryOutcomeRoutes,
  approvalRoutes,
  messageRoutes,
  childRoutes,
  ownScheduleRoutes,
  eventRoutes,
  reportRoutes,
  traceRoutes,
  verificationRoutes,
  userMessageRoutes,
  userStreamRoutes,
  userReportRoutes,
  userCloseSessionRoutes,
  userDeadLetterRoutes,
  userRatingRoutes,
  userTrustRoutes,
  userReactivationRoutes,
  userToolAuditRoutes,
  userAuditRoutes,
  userScheduleRoutes,
  a2aRoutes,
];
