import type { FastifyReply, FastifyRequest } from 'fastify';
import { answerRpc, cardAnswer, versionOf } from '../../a2a/json-rpc.ts';
import { VERSION_HEADER } from '../../a2a/protocol.ts';
import { PeerRequestHandler } from '../../a2a/request-handler.ts';
import type { StoredPeerTask } from '../../nats/tasks/peer-tasks.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { textStream } from '../http/body/text-stream.ts';
import { gatewayPeerCalls } from './gateway-peer-calls.ts';
import { requireServed } from './served-agent.ts';

export type PeerRequest = FastifyRequest<{ Params: { namespace: string; agent: string } }>;

const JSON_TYPE = 'application/json';

/** The card of the agent, for this caller. */
export async function answerCard(request: PeerRequest, reply: FastifyReply, deps: GatewayDeps): Promise<FastifyReply> {
  const card = await cardAnswer(handlerOf(request, deps), versionOf(request.headers));
  return reply.type(JSON_TYPE).header('vary', VERSION_HEADER).header('cache-control', 'no-store').send(card);
}

function handlerOf(request: PeerRequest, deps: GatewayDeps): PeerRequestHandler<StoredPeerTask> {
  const served = requireServed(request.params, request.peer, deps.directory);
  const call = { served, traceparent: request.headers[TRACEPARENT], logFields: request.logFields };
  return new PeerRequestHandler(gatewayPeerCalls(call, deps), signalOf(request, deps));
}

function signalOf(request: PeerRequest, { draining }: GatewayDeps): AbortSignal {
  return AbortSignal.any([request.disconnected, draining]);
}

/** The answer to a request of JSON-RPC, or a stream of answers. */
export async function answerRequest(
  request: PeerRequest,
  reply: FastifyReply,
  deps: GatewayDeps,
): Promise<FastifyReply> {
  const result = await answerRpc(request.body, versionOf(request.headers), handlerOf(request, deps));
  if ('json' in result) return reply.type(JSON_TYPE).send(result.json);
  return reply
    .type('text/event-stream')
    .header('cache-control', 'no-store')
    .send(textStream(result.events, { keepAlive: ':\n\n', signal: signalOf(request, deps), log: deps.log }));
}
