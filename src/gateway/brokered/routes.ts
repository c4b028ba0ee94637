import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { BrokeredCallRequest, BrokeredCallResult } from '../../gateway-api/brokered/brokered-schemas.ts';
import { UNANSWERED_HEADER } from '../../gateway-api/brokered/brokered-api.ts';
import { MAX_PARTS_BYTES, PARTS_TYPE } from '../../gateway-api/brokered/parts.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { TemperError } from '../../lib/errors.ts';
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
import { CallShares } from '../shares/call-shares.ts';
import { RecentCalls } from './recent-calls.ts';
import { limitTransfers, TRANSFERS } from './transfers.ts';

/** Tools that the gateway executes for the agents of pods. */
export function brokeredRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const callDeps: BrokeredCallDeps & GatewayDeps = {
    ...deps,
    shares: new CallShares(),
    attachments: new CallShares(TRANSFERS),
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
    (request, reply) => answerCall(request, reply, { call: request.body }, callDeps),
  );
  server.post(
    POD_API_PATHS.attachedCalls,
    {
      config: { access: 'pod', idempotent: true, attachment: true },
      bodyLimit: MAX_PARTS_BYTES,
      onRequest: limitTransfers(),
      schema: {
        ...POD_SECURITY,
        summary: 'Calls a tool that the gateway executes, with bytes beside the arguments',
        description:
          'The body is `BrokeredCallRequest` and the bytes. What the policy and an approver see is the arguments.',
        consumes: [PARTS_TYPE],
        body: AttachedCall,
        response: { 200: BrokeredCallResult, ...ERROR_RESPONSES },
      },
    },
    (request, reply) => {
      const { call, attachment } = request.body;
      if (!Buffer.isBuffer(attachment))
        throw new TemperError('TEMPER_REQUEST_INVALID', `this route reads ${PARTS_TYPE} only`);
      return answerCall(request, reply, { call, attachment }, callDeps);
    },
  );
}

const AttachedCall = Type.Object(
  { call: BrokeredCallRequest, attachment: Type.Unsafe<Buffer>({ description: 'The bytes after the JSON.' }) },
  closed,
);

async function answerCall(
  request: FastifyRequest,
  reply: FastifyReply,
  { call: { deliveryToken, ...asked }, attachment }: { call: BrokeredCallRequest; attachment?: Buffer },
  deps: BrokeredCallDeps & GatewayDeps,
): Promise<BrokeredCallResult> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const call = {
    ...asked,
    key: request.idempotencyKey,
    ...(attachment === undefined ? {} : { attachment }),
    isUnanswered: request.headers[UNANSWERED_HEADER] !== undefined,
    disconnected: request.disconnected,
  };
  const parent = parentSpanOf(delivery.claims, request.headers[TRACEPARENT]);
  const { tool, result } = await continueTrace(parent, () => callBrokeredTool(delivery, call, deps));
  const { name } = tool.descriptor;
  if ('output' in result) signFor(delivery.claims, reply, { name, input: asked.input, value: result.output }, deps);
  return result;
}
