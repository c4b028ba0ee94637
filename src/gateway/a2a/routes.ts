import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { A2A_PATH } from '../../a2a/card.ts';
import { A2A_LIMITS, answerRpc, cardAnswer, VERSION_HEADER, versionOf } from '../../a2a/json-rpc.ts';
import { PeerRequestHandler } from '../../a2a/request-handler.ts';
import { AgentName } from '../../gateway-api/schema-parts.ts';
import type { StoredPeerTask } from '../../nats/tasks/peer-tasks.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { textStream } from '../http/body/text-stream.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, PEER_SECURITY } from '../http/schemas.ts';
import { Namespace } from '../users/messages.ts';
import { gatewayPeerCalls } from './gateway-peer-calls.ts';
import { requireServed } from './served-agent.ts';

const Params = Type.Object({ namespace: Namespace, agent: AgentName });
const Card = Type.Unknown({ description: 'The agent card, in the form of the version that `A2A-Version` names.' });
const RpcBody = Type.Unknown({ description: 'A JSON-RPC request of A2A 1.0 or 0.3.' });
const RpcAnswer = Type.Unknown({ description: 'A JSON-RPC response, or a stream of them as server-sent events.' });
const JSON_TYPE = 'application/json';

/** Agents that opt in, as agents of the Agent2Agent protocol: their cards and their JSON-RPC endpoints. */
export function a2aRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    `${A2A_PATH}/.well-known/agent-card.json`,
    {
      config: { access: 'peer' },
      schema: {
        ...PEER_SECURITY,
        summary: 'The A2A agent card of an agent',
        params: Params,
        response: { 200: Card, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const card = await cardAnswer(handlerOf(request, deps), versionOf(request.headers));
      return reply.type(JSON_TYPE).header('vary', VERSION_HEADER).header('cache-control', 'no-store').send(card);
    },
  );
  server.post(
    A2A_PATH,
    {
      config: { access: 'peer', longPoll: true, maxValues: A2A_LIMITS.bodyValues },
      bodyLimit: A2A_LIMITS.bodyBytes,
      schema: {
        ...PEER_SECURITY,
        summary: 'A2A: messages to an agent, and its tasks',
        params: Params,
        body: RpcBody,
        response: { 200: RpcAnswer, ...ERROR_RESPONSES },
      },
    },
    (request, reply) => answer(request, reply, deps),
  );
}

type PeerRequest = FastifyRequest<{ Params: { namespace: string; agent: string } }>;

function handlerOf(request: PeerRequest, deps: GatewayDeps): PeerRequestHandler<StoredPeerTask> {
  const served = requireServed(request.params, request.peer, deps.directory);
  const call = { served, traceparent: request.headers[TRACEPARENT], logFields: request.logFields };
  return new PeerRequestHandler(gatewayPeerCalls(call, deps), signalOf(request, deps));
}

function signalOf(request: PeerRequest, { draining }: GatewayDeps): AbortSignal {
  return AbortSignal.any([request.disconnected, draining]);
}

async function answer(request: PeerRequest, reply: FastifyReply, deps: GatewayDeps): Promise<FastifyReply> {
  const result = await answerRpc(request.body, versionOf(request.headers), handlerOf(request, deps));
  if ('json' in result) return reply.type(JSON_TYPE).send(result.json);
  return reply
    .type('text/event-stream')
    .header('cache-control', 'no-store')
    .send(textStream(result.events, { keepAlive: ':\n\n', signal: signalOf(request, deps), log: deps.log }));
}
