import { Type } from 'typebox';
import { TemperError } from '../../lib/errors.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { NatsSessionStore } from '../../nats/sessions/port.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { AppendRequest, AppendResponse, SessionHistory } from '../../gateway-api/session-schemas.ts';
import { RegisteredTools } from '../../gateway-api/tool-schemas.ts';
import { SessionId } from '../../tools/event-schema/parts.ts';
import { type Demotions, inService } from '../cluster/demotions.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import type { RouteModule } from '../http/routes.ts';
import { appendItems } from '../storage/append-items.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';

export interface SessionRouteDeps {
  /** The sessions of one agent. */
  sessionsOf: (agentUid: string) => NatsSessionStore;
  registry: SessionRegistry;
  demotions: Demotions;
}

/** As much as the largest request to a model: a history beyond it is of no use. */
const MAX_BODY_BYTES = 8 * 1_024 * 1_024;
/** 2,000 items with their members, most of them with several tool calls. */
const MAX_BODY_VALUES = 100_000;
const Params = Type.Object({ session: SessionId });
const loadSchema = {
  ...POD_SECURITY,
  params: Params,
  summary: 'History of a session',
  response: { 200: SessionHistory, ...ERROR_RESPONSES },
};
const toolsSchema = {
  ...POD_SECURITY,
  params: Params,
  summary: 'Tools of a session',
  response: { 200: RegisteredTools, ...ERROR_RESPONSES },
};
const appendSchema = {
  ...POD_SECURITY,
  params: Params,
  body: AppendRequest,
  summary: 'Appends to the history; 409 after a concurrent write',
  response: { 200: AppendResponse, ...ERROR_RESPONSES },
};
const closeSchema = {
  ...POD_SECURITY,
  params: Params,
  summary: 'Closes a session',
  response: { 204: Done, ...ERROR_RESPONSES },
};

/** Histories and tools of the agent's own sessions. The binding of the pod determines the agent, never the path. */
export function sessionRoutes({ sessionsOf, registry, demotions }: SessionRouteDeps): RouteModule {
  return (server, deps) => {
    const config = { access: 'pod' } as const;
    const path = `${POD_API_PATHS.sessions}/:session`;
    server.get(
      path,
      { config: { ...config, largeResponse: true }, schema: loadSchema },
      ({ pod, params, holdResponse: admit, disconnected: signal }) =>
        sessionsOf(pod.agentUid).loadFor(params.session, { admit, signal }),
    );
    server.get(`${path}/tools`, { config, schema: toolsSchema }, async ({ pod, params }) => {
      const tools = await registry.tools(pod.agentUid, params.session);
      return inService(tools, (digest) => demotions.reason(pod, digest) !== undefined);
    });
    server.post(
      `${path}/items`,
      {
        config: { access: 'pod', idempotent: true, writesStorage: true, maxValues: MAX_BODY_VALUES },
        bodyLimit: MAX_BODY_BYTES,
        schema: appendSchema,
      },
      async (request) => {
        const { deliveryToken, ...append } = request.body;
        const { claims } = authorizeDelivery(request, deliveryToken, deps);
        const { session } = request.params;
        if (claims.session !== session) {
          throw new TemperError(
            'TEMPER_DELIVERY_TOKEN_INVALID',
            `the delivery token belongs to session "${claims.session}"`,
          );
        }
        return { seq: await appendItems(sessionsOf(claims.agentUid), session, append) };
      },
    );
    server.delete(path, { config, schema: closeSchema }, async (request, reply) => {
      const { agentUid } = request.pod;
      const { session } = request.params;
      // Tools first: after a crash in between the session can be closed again.
      await registry.close(agentUid, session);
      await sessionsOf(agentUid).close(session);
      return reply.code(204).send(null);
    });
  };
}
