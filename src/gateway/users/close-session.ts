import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { SessionCloseReceipt } from '../../gateway-api/user-schemas.ts';
import { TemperError } from '../../lib/errors.ts';
import type { StampedEvent } from '../../tools/events.ts';
import { SessionId } from '../../tools/event-schema/parts.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { AGENT_PATH, AgentParams, requireAgent } from './messages.ts';

const Query = Type.Object(
  { endWork: Type.Optional(Type.Boolean({ description: 'End the messages that have not ended, without an answer.' })) },
  closed,
);
const REASON = 'a user closed the session';

/** Closes sessions for users: their history and their tools are deleted, and they take no more messages. */
export function userCloseSessionRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.delete(
    `${AGENT_PATH}/sessions/:session`,
    {
      config: { access: 'user' },
      schema: {
        ...USER_SECURITY,
        summary: 'Closes a session permanently',
        params: Type.Intersect([AgentParams, Type.Object({ session: SessionId })]),
        querystring: Query,
        response: { 200: SessionCloseReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const state = requireAgent(request.params, deps);
      const { session } = request.params;
      await assertClosable(state, session, request.query.endWork === true, deps);
      return closeSession(state, session, deps);
    },
  );
}

/** Throws TEMPER_NOT_FOUND and TEMPER_SESSION_BUSY. */
async function assertClosable(state: AgentState, session: string, endWork: boolean, deps: GatewayDeps): Promise<void> {
  const { uid, agent } = state;
  const sessions = deps.sessionsOf(uid);
  if (await sessions.isClosed(session)) return;
  const unended = await deps.inbox.unendedIn(uid, session);
  if (unended.length === 0 && !(await sessions.exists(session))) {
    throw new TemperError('TEMPER_NOT_FOUND', `agent "${agent.metadata.name}" has no session "${session}"`);
  }
  if (endWork || unended.length === 0) return;
  const waitsFor = await deps.approvals.waitingIn(uid, session);
  const why = waitsFor.length === 0 ? '' : `, and it waits for ${waitsFor.join(', ')}`;
  throw new TemperError(
    'TEMPER_SESSION_BUSY',
    `session "${session}" has ${unended.length} messages that have not ended${why}; wait for them, or end them with --end-work (endWork=true)`,
  );
}

/**
 * Each step can be repeated. The closed head comes first: from then on no message is delivered in the session and nothing is appended to
 * it, so a pod that still works on a message of it stops at its next request.
 */
async function closeSession(
  { uid, agent }: AgentState,
  session: string,
  deps: GatewayDeps,
): Promise<SessionCloseReceipt> {
  const isNew = await deps.sessionsOf(uid).closePermanently(session);
  const endedMessages = await deps.inbox.rejectSession(uid, session, { code: 'TEMPER_SESSION_CLOSED', reason: REASON });
  const tools = await deps.closeTools(uid, session);
  const { name, namespace = '' } = agent.metadata;
  const facts = { agent: name, tools, endedMessages: endedMessages.length };
  await deps.audit.append(
    { namespace, agentUid: uid },
    { action: 'session.closed', actor: 'user', evidence: 'observed', subject: session, facts },
    `session-closed/${uid}/${session}`,
  );
  await publishEnd({ uid, name, session }, deps);
  return { session, closedBefore: !isNew, tools, endedMessages };
}

/** The last event of the session: followers of the whole session stop at it. */
async function publishEnd(
  { uid, name, session }: { uid: string; name: string; session: string },
  { events, clock, log }: GatewayDeps,
): Promise<void> {
  const time = clock.now().toISOString();
  const event: StampedEvent = {
    type: 'error',
    code: 'TEMPER_SESSION_CLOSED',
    message: REASON,
    attempt: 1,
    time,
    agent: name,
    session,
    rootMessage: '',
  };
  try {
    await events.append(uid, session, { kind: 'event', event }, { once: 'session-closed' });
  } catch (error) {
    log.warn({ error, session }, 'the end of a closed session could not be published');
  }
}
