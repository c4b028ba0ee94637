import type { FastifyRequest } from 'fastify';
import { EGRESS_API_PATHS } from '../../gateway-api/egress/egress-api.ts';
import {
  EgressAuthorization,
  EgressAuthorizationRequest,
  EgressReport,
  EgressReportResult,
} from '../../gateway-api/egress/egress-schemas.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RouteModule } from '../http/routes.ts';
import { EGRESS_SECURITY, ERROR_RESPONSES } from '../http/schemas.ts';
import { authorizeConnection, type EgressDeps, reviewConnections } from './connections.ts';

const CONFIG = { access: 'egress' } as const;
const TIMEOUT_MS = 3_000;

/** What the egress proxy asks for the pods: it has no policy of its own. */
export function egressRoutes({ ledger }: Pick<EgressDeps, 'ledger'>): RouteModule {
  return (server, deps) => {
    const egressDeps: EgressDeps = { ...deps, ledger };
    server.post(
      EGRESS_API_PATHS.authorize,
      {
        config: CONFIG,
        schema: {
          ...EGRESS_SECURITY,
          summary: 'May the pod open this connection?',
          body: EgressAuthorizationRequest,
          response: { 200: EgressAuthorization, ...ERROR_RESPONSES },
        },
      },
      async (request) => authorizeConnection(request.body, egressDeps, opOf(request, deps.clock)),
    );
    server.post(
      EGRESS_API_PATHS.report,
      {
        config: CONFIG,
        schema: {
          ...EGRESS_SECURITY,
          summary: 'Charges the bytes of open connections, and names those that must end',
          body: EgressReport,
          response: { 200: EgressReportResult, ...ERROR_RESPONSES },
        },
      },
      async (request) => reviewConnections(request.body, egressDeps, opOf(request, deps.clock)),
    );
  };
}

/** Each request counts on its own, so its own id is the key. */
function opOf({ id, disconnected }: FastifyRequest, clock: Clock): CallOptions {
  return { signal: disconnected, deadline: clock.monotonic() + TIMEOUT_MS, key: `egress/${id}` };
}
