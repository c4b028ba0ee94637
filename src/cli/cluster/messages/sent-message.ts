import type { UserMessageReceipt, UserMessageRequest } from '../../../gateway-api/user-api.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../../../lib/json.ts';
import type { CliIo } from '../../io.ts';
import type { GatewayUserClient } from '../gateway-user-client.ts';
import { withRetry } from '../retry-budget.ts';

/** How long to retry while the gateway or NATS is unavailable: longer than both take to start after an installation. */
const RETRY_SECONDS = 60;

export interface SentMessage extends UserMessageRequest {
  readonly agent: string;
  /** Messages with the same key are one message. */
  readonly key: string;
  /** Maximum seconds of retries; 60 by default. */
  readonly retrySeconds?: number | undefined;
}

/** Sends a message to an agent. Throws the error of the gateway. */
export async function sendMessage(
  gateway: Pick<GatewayUserClient, 'call'>,
  { agent, key, text, session, retrySeconds = RETRY_SECONDS }: SentMessage,
  io: Pick<CliIo, 'error' | 'signal'>,
): Promise<UserMessageReceipt> {
  const call = {
    method: 'POST',
    path: `agents/${encodeURIComponent(agent)}/messages`,
    body: { text, ...(session === undefined ? {} : { session }) } satisfies UserMessageRequest,
    idempotencyKey: key,
  } as const;
  return receiptOf(await withRetry(retrySeconds, io, () => gateway.call(call)));
}

export interface SentCall {
  readonly agent: string;
  readonly tool: string;
  readonly input: JsonObject;
  readonly session: string;
  /** Calls with the same key are one call. */
  readonly key: string;
}

/** Sends a call of a tool to an agent. Throws the error of the gateway. */
export async function sendToolCall(
  gateway: Pick<GatewayUserClient, 'call'>,
  { agent, key, ...body }: SentCall,
  io: Pick<CliIo, 'error' | 'signal'>,
): Promise<UserMessageReceipt> {
  const path = `agents/${encodeURIComponent(agent)}/calls`;
  const call = { method: 'POST', path, body, idempotencyKey: key } as const;
  return receiptOf(await withRetry(RETRY_SECONDS, io, () => gateway.call(call)));
}

const TRACE_ID = /^[0-9a-f]{32}$/;

function receiptOf(response: Json): UserMessageReceipt {
  const id = textAt(response, ['id']);
  const session = textAt(response, ['session']);
  if (!isJsonObject(response) || id === '' || session === '') {
    throw new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'the response of the gateway is not a receipt');
  }
  const after = member(response, 'after');
  const traceId = textAt(response, ['traceId']);
  const waitsFor = Array.isArray(response.waitsFor) ? response.waitsFor.filter((name) => typeof name === 'string') : [];
  return {
    id,
    session,
    duplicate: member(response, 'duplicate') === true,
    podBound: member(response, 'podBound') === true,
    after: typeof after === 'number' ? after : 0,
    ...(waitsFor.length === 0 ? {} : { waitsFor }),
    ...(TRACE_ID.test(traceId) ? { traceId } : {}),
  };
}
