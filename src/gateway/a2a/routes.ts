import { AgentCard, A2A_VERSION_HEADER } from '@a2a-js/sdk';
import { LegacyJsonRpcTransportHandler, LegacyRestTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { A2A_ERROR_CODE, VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AgentName } from '../../gateway-api/schema-parts.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { textStream } from '../http/body/text-stream.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, PEER_SECURITY } from '../http/schemas.ts';
import { Namespace } from '../users/messages.ts';
import { A2A_PATH, PROTOCOL_VERSIONS } from './card.ts';
import { rpcError } from './errors.ts';
import { PeerRequestHandler } from './request-handler.ts';
import { envelopeProblem, parameterProblem, type RpcRequest } from './request-schemas.ts';
import { requireServed } from './served-agent.ts';

const MAX_BODY_BYTES = 512 * 1_024;
const MAX_BODY_VALUES = 10_000;
const Params = Type.Object({ namespace: Namespace, agent: AgentName });
const Card = Type.Unknown({ description: 'The agent card, in the form of the version that `A2A-Version` names.' });
const RpcBody = Type.Unknown({ description: 'A JSON-RPC request of A2A 1.0 or 0.3.' });
const RpcAnswer = Type.Unknown({ description: 'A JSON-RPC response, or a stream of them as server-sent events.' });
/** A client that names no version speaks 0.3, as the protocol says. */
const [CURRENT, LEGACY] = PROTOCOL_VERSIONS;
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
      const handler = handlerOf(request, deps);
      const legacy = new LegacyRestTransportHandler(handler);
      const card = isLegacy(request)
        ? await legacy.getAuthenticatedExtendedAgentCard(new ServerCallContext())
        : AgentCard.toJSON(await handler.getAgentCard());
      return reply.type(JSON_TYPE).header('vary', A2A_VERSION_HEADER).header('cache-control', 'no-store').send(card);
    },
  );
  server.post(
    A2A_PATH,
    {
      config: { access: 'peer', longPoll: true, maxValues: MAX_BODY_VALUES },
      bodyLimit: MAX_BODY_BYTES,
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

function handlerOf(request: PeerRequest, deps: GatewayDeps): PeerRequestHandler {
  const served = requireServed(request.params, request.peer, deps.directory);
  const signal = AbortSignal.any([request.disconnected, deps.draining]);
  const call = { served, signal, traceparent: request.headers[TRACEPARENT], logFields: request.logFields };
  return new PeerRequestHandler(call, deps);
}

function versionOf({ headers }: FastifyRequest): string {
  const version = headers[A2A_VERSION_HEADER.toLowerCase()];
  return typeof version === 'string' && version !== '' ? version : LEGACY;
}

function isLegacy(request: FastifyRequest): boolean {
  return versionOf(request) === LEGACY;
}

/** The handlers of the SDK for both versions; they convert requests and results. */
function transportOf(request: PeerRequest, deps: GatewayDeps) {
  const handler = handlerOf(request, deps);
  return isLegacy(request)
    ? {
        transport: new LegacyJsonRpcTransportHandler(handler),
        errorOf: (error: unknown) => LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error),
      }
    : {
        transport: new JsonRpcTransportHandler(handler),
        errorOf: (error: unknown) => JsonRpcTransportHandler.mapToJSONRPCError(error),
      };
}

async function answer(request: PeerRequest, reply: FastifyReply, deps: GatewayDeps): Promise<FastifyReply> {
  const { transport, errorOf } = transportOf(request, deps);
  const refused = problemOf(request);
  const id = refused?.id ?? (request.body as RpcRequest).id ?? null;
  const failed = (error: unknown) => ({ jsonrpc: '2.0', id, error: errorOf(error) });
  if (refused !== undefined) return reply.type(JSON_TYPE).send(failed(refused.error));
  const context = new ServerCallContext({ requestedVersion: versionOf(request) });
  const result = await transport.handle(request.body as Record<string, unknown>, context);
  if (!isStream(result)) return reply.type(JSON_TYPE).send(result);
  const first = await result.next().catch(failed);
  // An error before the first event is an answer of its own.
  if (!('done' in first)) return reply.type(JSON_TYPE).send(first);
  const parts = serverSentEvents(first, result, failed);
  const signal = AbortSignal.any([request.disconnected, deps.draining]);
  return reply
    .type('text/event-stream')
    .header('cache-control', 'no-store')
    .send(textStream(parts, { keepAlive: ':\n\n', signal, log: deps.log }));
}

/** Why the SDK does not get the request. */
function problemOf(request: PeerRequest): { error: Error; id: RpcRequest['id'] } | undefined {
  const envelope = envelopeProblem(request.body);
  if (envelope !== undefined) return { error: rpcError(A2A_ERROR_CODE.INVALID_REQUEST, envelope), id: null };
  const rpc = request.body as RpcRequest;
  const version = versionOf(request);
  if (version !== CURRENT && version !== LEGACY) {
    const message = `version ${version.slice(0, 32)} of A2A is not supported; use ${PROTOCOL_VERSIONS.join(' or ')}`;
    return { error: new VersionNotSupportedError(message), id: rpc.id };
  }
  const parameters = parameterProblem(rpc);
  return parameters === undefined
    ? undefined
    : { error: rpcError(A2A_ERROR_CODE.INVALID_PARAMS, parameters), id: rpc.id };
}

type RpcStream = AsyncGenerator<unknown, void, undefined>;

function isStream(result: object): result is RpcStream {
  return Symbol.asyncIterator in result;
}

async function* serverSentEvents(
  first: IteratorResult<unknown>,
  rest: RpcStream,
  failed: (error: unknown) => object,
): AsyncGenerator<string> {
  try {
    if (first.done !== true) yield eventOf(first.value);
    for await (const value of rest) yield eventOf(value);
  } catch (error) {
    yield `event: error\n${eventOf(failed(error))}`;
  }
}

function eventOf(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
