import { BrokeredCallRequest, BrokeredCallResult } from '../../gateway-api/brokered/brokered-schemas.ts';
import { UNANSWERED_HEADER } from '../../gateway-api/brokered/brokered-api.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { continueTrace } from '../../telemetry/spans.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { GatewayDeps } from '../deps.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import { signFor } from '../delivery/sign-answer.ts';
import { MinuteCounts } from '../http/limits/minute-counts.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { parentSpanOf } from '../tracing/message-traces.ts';
import { type BrokeredCallDeps, callBrokeredTool } from './call.ts';
import { CallShares } from './call-shares.ts';
import { RecentCalls } from './recent-calls.ts';

/** Tools that the gateway executes for the agents of pods. */
export function brokeredRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const callDeps: BrokeredCallDeps = {
    ...deps,
    shares: new CallShares(),
    recent: new RecentCalls<BrokeredCallResult>(deps.clock),
    callsInMinute: new MinuteCounts(deps.clock),
    schemas: createSchemaCompiler(),
  };
  server.post(
    POD_API_PATHS.brokeredCalls,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Calls a tool that the gateway executes',
        body: BrokeredCallRequest,
        response: { 200: BrokeredCallResult, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { deliveryToken, ...asked } = request.body;
      const delivery = authorizeDelivery(request, deliveryToken, deps);
      const call = {
        ...asked,
        key: request.idempotencyKey,
        isUnanswered: request.headers[UNANSWERED_HEADER] !== undefined,
        disconnected: request.disconnected,
      };
      const parent = parentSpanOf(delivery.claims, request.headers[TRACEPARENT]);
      const { tool, result } = await continueTrace(parent, () => callBrokeredTool(delivery, call, callDeps));
      const { name } = tool.descriptor;
      if ('output' in result) signFor(delivery.claims, reply, { name, input: asked.input, value: result.output }, deps);
      return result;
    },
  );
}
