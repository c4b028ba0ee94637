import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import { SessionId, text } from '../../tools/event-schema/parts.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, requireAgent } from '../users/messages.ts';
import { McpAgent } from './mcp-agent.ts';
import { assertOrigin } from './origin.ts';
import { newProtocolSession, protocolSession, SESSION_HEADER } from './protocol-session.ts';
import { sessionResources } from './session-resources.ts';

const PATH = `${AGENT_PATH}/mcp`;
const MAX_BODY_BYTES = 512 * 1_024;
const MAX_BODY_VALUES = 10_000;
/** The headers that the protocol reads. */
const PROTOCOL_HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

/** One message: several in one body would be several requests under the limits of one. */
const Message = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(Type.Union([Type.String({ maxLength: 256 }), Type.Integer()])),
    method: text(128, 'The method of the protocol.'),
    params: Type.Optional(Type.Unknown()),
  },
  { ...closed, description: 'A JSON-RPC request or notification of MCP.' },
);
const Query = Type.Object(
  {
    session: Type.Optional(
      Type.Unsafe<string>({
        ...SessionId,
        description:
          'The session of what the client calls. Absent: that of the header Mcp-Session-Id, which the answer to initialize has; without both a new one for each call.',
      }),
    ),
  },
  closed,
);
const Answer = Type.Unknown({ description: 'A JSON-RPC response, or a stream of messages as server-sent events.' });

/** An agent for clients of the Model Context Protocol: Streamable HTTP, of which the gateway keeps nothing between requests. */
export function mcpRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const schemas = createSchemaCompiler();
  const onRequest = async ({ headers }: FastifyRequest): Promise<void> => assertOrigin(headers.origin);
  server.post(
    PATH,
    {
      config: { access: 'user', longPoll: true, maxValues: MAX_BODY_VALUES },
      onRequest,
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        ...USER_SECURITY,
        summary: 'MCP: the agent and its tools',
        params: AgentParams,
        querystring: Query,
        body: Message,
        response: { 200: Answer, 202: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const state = requireAgent(request.params, deps);
      const { headers, logFields, params, query } = request;
      const signal = AbortSignal.any([request.disconnected, deps.draining]);
      const caller = { namespace: params.namespace, traceparent: headers[TRACEPARENT], logFields };
      const session = query.session ?? (await protocolSession(headers, state, deps));
      const agent = new McpAgent({ deps: { ...deps, schemas }, state, caller, session, signal });
      // The server is large, so a gateway loads it with the first request.
      const { createToolServer } = await import('../../mcp/server/tool-server.ts');
      const serve = createToolServer(agent, { resources: sessionResources(state, deps, signal) });
      const response = await serve(protocolRequest(request));
      if (request.body.method === 'initialize' && query.session === undefined)
        void reply.header(SESSION_HEADER, newProtocolSession(state, deps));
      return relay(response, reply);
    },
  );
  // The protocol asks for this status where a server opens no streams and lets no client end a session.
  for (const method of ['GET', 'DELETE'] as const)
    server.route({
      method,
      url: PATH,
      config: { access: 'user' },
      onRequest,
      schema: { hide: true, params: AgentParams },
      handler: async (_request, reply) => reply.code(405).header('allow', 'POST').send(),
    });
}

function protocolRequest({ headers, body }: FastifyRequest): Request {
  const passed = PROTOCOL_HEADERS.flatMap((name) => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value] as [string, string]] : [];
  });
  return new Request('https://temper-gateway/mcp', { method: 'POST', headers: passed, body: JSON.stringify(body) });
}

async function relay({ status, headers, body }: Response, reply: FastifyReply): Promise<FastifyReply> {
  void reply.code(status).header('cache-control', 'no-store');
  const type = headers.get('content-type');
  if (type !== null) void reply.type(type);
  return body === null ? reply.send() : reply.send(Readable.fromWeb(body as ReadableStream<Uint8Array>));
}
