import { encodeParts, PARTS_TYPE } from '../../gateway-api/brokered/parts.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { RepositoryReadRequest } from '../../gateway-api/repositories/repository-schemas.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { continueTrace } from '../../telemetry/spans.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import { CallShares } from '../shares/call-shares.ts';
import { limitTransfers, TRANSFERS } from '../brokered/transfers.ts';
import type { GatewayDeps } from '../deps.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Bytes, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { parentSpanOf } from '../tracing/message-traces.ts';
import { readForCall } from './read-for-call.ts';

/** Repositories of connections, for the git tools of pods. */
export function repositoryRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const readDeps = { ...deps, schemas: createSchemaCompiler(), shares: new CallShares(TRANSFERS) };
  server.post(
    POD_API_PATHS.repositoryReads,
    {
      config: { access: 'pod', idempotent: true },
      onRequest: limitTransfers(),
      schema: {
        ...POD_SECURITY,
        summary: 'Answers a question about the repository of a call',
        description: 'The answer is `BrokeredCallResult`, and perhaps a pack after it.',
        produces: [PARTS_TYPE],
        body: RepositoryReadRequest,
        response: { 200: Bytes, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { deliveryToken, ...asked } = request.body;
      const delivery = authorizeDelivery(request, deliveryToken, deps);
      const read = { ...asked, key: request.idempotencyKey, disconnected: request.disconnected };
      const parent = parentSpanOf(delivery.claims, request.headers[TRACEPARENT]);
      const { result, pack } = await continueTrace(parent, () => readForCall(delivery, read, readDeps));
      return reply.type(PARTS_TYPE).send(encodeParts(result, pack ?? Buffer.alloc(0)));
    },
  );
}
