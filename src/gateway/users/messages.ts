import { Type } from 'typebox';
import type { MessageCall } from '../../bus/port.ts';
import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { AgentName } from '../../gateway-api/schema-parts.ts';
import { USERS_PATH } from '../../gateway-api/user-api.ts';
import { UserMessageReceipt, UserMessageRequest } from '../../gateway-api/user-schemas.ts';
import { TRACEPARENT, traceIdOf } from '../../telemetry/traceparent.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { type MessageLogFields, publishTraced } from '../tracing/message-traces.ts';
import { assertNotClosed } from '../storage/closed-sessions.ts';
import { requestWakeup } from '../pods/wakeup.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';

export const NAMESPACE_PATH = `${USERS_PATH}/:namespace`;
export const AGENT_PATH = `${NAMESPACE_PATH}/agents/:agent`;
const CHAIN_TIMEOUT_MS = 3_600_000;

export const Namespace = Type.String({ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 });
export const AgentParams = Type.Object({ namespace: Namespace, agent: AgentName });

/** The agent in the path. Throws TEMPER_NOT_FOUND. */
export function requireAgent(params: { namespace: string; agent: string }, { directory }: GatewayDeps): AgentState {
  const state = directory.agent(params.namespace, params.agent);
  if (state === undefined) {
    throw new TemperError('TEMPER_NOT_FOUND', `namespace ${params.namespace} has no agent "${params.agent}"`);
  }
  return state;
}

/** Messages of users: each starts a new chain. */
export function userMessageRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    `${AGENT_PATH}/messages`,
    {
      config: { access: 'user', idempotent: true, writesStorage: true },
      schema: {
        ...USER_SECURITY,
        summary: 'Sends a message to an agent',
        params: AgentParams,
        body: UserMessageRequest,
        response: { 200: UserMessageReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      const { headers, idempotencyKey: key, logFields, body, params } = request;
      const message = { ...body, namespace: params.namespace, key, traceparent: headers[TRACEPARENT], logFields };
      return sendUserMessage(state, message, deps);
    },
  );
}

export interface UserMessageToSend extends UserMessageRequest {
  /** In place of the text, which only describes it. */
  readonly call?: MessageCall;
  /** The namespace of the user and of the agent. */
  readonly namespace: string;
  /** Messages of one namespace with the same key are one message. */
  readonly key: string;
  /** W3C Trace Context of the caller, not validated. */
  readonly traceparent: unknown;
  readonly logFields: MessageLogFields;
}

/** Sends a message of a user. Throws TEMPER_SESSION_CLOSED and TEMPER_BUS_*. */
export async function sendUserMessage(
  state: AgentState,
  { text, call, session, namespace, key: stated, traceparent: header, logFields }: UserMessageToSend,
  deps: GatewayDeps,
): Promise<UserMessageReceipt> {
  const key = `${state.uid}/${stated}`;
  const targetSession = session ?? newSession(key);
  const now = deps.clock.now();
  const noRequests: string[] = [];
  const [previous, waitsFor] = await Promise.all(
    session === undefined
      ? [deps.events.baseSequence(), Promise.resolve(noRequests)]
      : [
          deps.events.lastSequence(state.uid, session),
          deps.approvals.waitingIn(state.uid, session),
          assertNotClosed(state, session, deps),
        ],
  );
  const message = {
    to: state.agent.metadata.name,
    from: 'user',
    source: 'User' as const,
    session: targetSession,
    text,
    ...(call === undefined ? {} : { call }),
    depth: 0,
    deadline: new Date(now.getTime() + CHAIN_TIMEOUT_MS).toISOString(),
    time: now.toISOString(),
  };
  const sender = { uid: senderOf(namespace), key };
  const { receipt, traceparent } = await publishTraced(header, { session: targetSession, seed: key }, (own) =>
    deps.inbox.publish(state.uid, sender, { ...message, traceparent: own }),
  );
  const traceId = traceIdOf(traceparent) ?? '';
  Object.assign(logFields, { agent: message.to, messageId: receipt.id, session: targetSession, traceId });
  await requestWakeup(state, deps);
  // The reply to a duplicate may precede this request, so the client reads from the start.
  const after = receipt.duplicate ? await deps.events.baseSequence() : previous;
  const podBound = state.podUid !== undefined;
  const waiting = waitsFor.length === 0 ? {} : { waitsFor };
  const { id, duplicate } = receipt;
  return { id, duplicate, session: targetSession, podBound, after, traceId, ...waiting };
}

/** One sender id for all users of a namespace; NATS limits the length of sender ids. */
function senderOf(namespace: string): string {
  return `users-${sha256(namespace).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

/** Derived from the key, so that a retried message uses the session that its first attempt opened. */
export function newSession(key: string): string {
  return `s-${sha256(`session ${key}`).slice('sha256:'.length, 'sha256:'.length + 24)}`;
}
