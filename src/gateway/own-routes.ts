import { assignmentRoutes } from './assignment.ts';
import { claimRoutes } from './claims.ts';
import { deliveryLeaseRoutes } from './delivery-leases.ts';
import { deliveryRoutes } from './delivery.ts';
import { messageRoutes } from './messages.ts';
import { peopleDeadLetterRoutes } from './people-dead-letters.ts';
import { peopleFollowRoutes } from './people-follow.ts';
import { peopleReportRoutes } from './people-reports.ts';
import { peopleMessageRoutes } from './people.ts';
import type { RouteModule } from './routes.ts';
import { traceRoutes } from './traces.ts';

/** Routes for assignments, deliveries, reports, traces and users. Routes that need models, a ledger or a judge are added separately. */
export const DOOR_ROUTES: readonly RouteModule[] = [
  assignmentRoutes,
  deliveryRoutes,
  deliveryLeaseRoutes,
  messageRoutes,
  claimRoutes,
  traceRoutes,
  peopleMessageRoutes,
  peopleFollowRoutes,
  peopleReportRoutes,
  peopleDeadLetterRoutes,
];
