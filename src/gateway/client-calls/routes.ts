import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { CallableTool, UserCallRequest } from '../../gateway-api/client-calls/call-schemas.ts';
import { UserMessageReceipt } from '../../gateway-api/user-schemas.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { SessionId } from '../../tools/event-schema/parts.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, requireAgent } from '../users/messages.ts';
import { callableTools } from './callable-tools.ts';
import { sendToolCall } from './send-call.ts';

function described(tool: ToolDescriptor): CallableTool {
  const { name, description, inputSchema, outputSchema, category, action, sideEffects, locality, forged } = tool;
  return {
    name,
    description,
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    category,
    action,
    sideEffects,
    locality,
    ...(forged === undefined ? {} : { forged: ofForged(forged) }),
  };
}

function ofForged({
  digest,
  tier,
  pure = false,
}: NonNullable<ToolDescriptor['forged']>): NonNullable<CallableTool['forged']> {
  return { digest, tier: tier === 'Shared' ? 'Shared' : 'Agent', pure };
}

/** Calls that programs of users make as an agent, without its model. */
export function clientCallRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const schemas = createSchemaCompiler();
  server.get(
    `${AGENT_PATH}/callable-tools`,
    {
      config: { access: 'user' },
      schema: {
        ...USER_SECURITY,
        summary: 'The tools that a program may call as the agent',
        params: AgentParams,
        querystring: Type.Object({ session: Type.Optional(SessionId) }, closed),
        response: { 200: Type.Array(CallableTool), ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const tools = await callableTools(requireAgent(request.params, deps), request.query.session, deps);
      return tools.map(described);
    },
  );
  server.post(
    `${AGENT_PATH}/calls`,
    {
      config: { access: 'user', idempotent: true },
      schema: {
        ...USER_SECURITY,
        summary: 'Calls a tool as the agent, without its model',
        params: AgentParams,
        body: UserCallRequest,
        response: { 200: UserMessageReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      const { headers, idempotencyKey: key, logFields, body, params } = request;
      const call = { ...body, namespace: params.namespace, key, traceparent: headers[TRACEPARENT], logFields };
      return (await sendToolCall(state, call, { ...deps, schemas })).receipt;
    },
  );
}
