import { Type } from 'typebox';
import { EventSummary } from '../../gateway-api/events/event-schemas.ts';
import { printable } from '../../lib/printable.ts';
import type { PastEvent } from '../../nats/events/event-history.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { Namespace, NAMESPACE_PATH } from './messages.ts';

const MAX_EXCERPT_CHARACTERS = 200;

/** The history of the events of a namespace. */
export function userEventRoutes(server: GatewayServer, { eventHistory }: GatewayDeps): void {
  server.get(
    `${NAMESPACE_PATH}/events`,
    {
      config: { access: 'user' },
      schema: {
        ...USER_SECURITY,
        params: Type.Object({ namespace: Namespace }),
        response: { 200: Type.Array(EventSummary, { description: 'Oldest first.' }), ...ERROR_RESPONSES },
      },
    },
    async (request) => (await eventHistory.read(request.params.namespace)).map(summaryOf),
  );
}

function summaryOf({ id, subject, source, agent, time, tainted, messages, refused, data }: PastEvent): EventSummary {
  const excerpt = printable(JSON.stringify(data), MAX_EXCERPT_CHARACTERS);
  return { id, subject, source, agent, time, tainted, messages, refused, excerpt };
}
