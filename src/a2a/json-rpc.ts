import { AgentCard } from '@a2a-js/sdk';
import { LegacyJsonRpcTransportHandler, LegacyRestTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { A2A_ERROR_CODE, VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { type A2ARequestHandler, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { rpcError } from './errors.ts';
import { PROTOCOL_VERSIONS, VERSION_HEADER } from './protocol.ts';
import { envelopeProblem, parameterProblem, type RpcRequest } from './request-schemas.ts';

/** A client that names no version speaks 0.3, as the protocol says. */
const [CURRENT, LEGACY] = PROTOCOL_VERSIONS;

/** One JSON value, or server-sent events, whose keep-alive is a line with a colon. */
export type RpcAnswer = { json: object } | { events: AsyncGenerator<string> };

/** `headers`: by lower-case name. */
export function versionOf(headers: Readonly<Record<string, string | string[] | undefined>>): string {
  const version = headers[VERSION_HEADER.toLowerCase()];
  return typeof version === 'string' && version !== '' ? version : LEGACY;
}

/** The card in the form of the version. */
export async function cardAnswer(handler: A2ARequestHandler, version: string): Promise<object> {
  if (version !== LEGACY) return AgentCard.toJSON(await handler.getAgentCard()) as object;
  return new LegacyRestTransportHandler(handler).getAuthenticatedExtendedAgentCard(new ServerCallContext());
}

/** Answers a request of A2A 1.0 or 0.3. The handlers of the SDK convert requests and results. */
export async function answerRpc(body: unknown, version: string, handler: A2ARequestHandler): Promise<RpcAnswer> {
  const { transport, errorOf } = transportOf(handler, version);
  const refused = problemOf(body, version);
  const id = refused?.id ?? (body as RpcRequest).id ?? null;
  const failed = (error: unknown) => ({ jsonrpc: '2.0', id, error: errorOf(error) });
  if (refused !== undefined) return { json: failed(refused.error) };
  const context = new ServerCallContext({ requestedVersion: version });
  const result = await transport.handle(body as Record<string, unknown>, context);
  if (!isStream(result)) return { json: result };
  const first = await result.next().catch(failed);
  // An error before the first event is an answer of its own.
  return 'done' in first ? { events: serverSentEvents(first, result, failed) } : { json: first };
}

function transportOf(handler: A2ARequestHandler, version: string) {
  return version === LEGACY
    ? {
        transport: new LegacyJsonRpcTransportHandler(handler),
        errorOf: (error: unknown) => LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error),
      }
    : {
        transport: new JsonRpcTransportHandler(handler),
        errorOf: (error: unknown) => JsonRpcTransportHandler.mapToJSONRPCError(error),
      };
}

/** Why the SDK does not get the request. */
function problemOf(body: unknown, version: string): { error: Error; id: RpcRequest['id'] } | undefined {
  const envelope = envelopeProblem(body);
  if (envelope !== undefined) return { error: rpcError(A2A_ERROR_CODE.INVALID_REQUEST, envelope), id: null };
  const rpc = body as RpcRequest;
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
