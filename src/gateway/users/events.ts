import { Type } from 'typebox';
import { eventSummary } from '../../events/past-event.ts';
import { EventSummary } from '../../gateway-api/events/event-schemas.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { Namespace, NAMESPACE_PATH } from './messages.ts';

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
    async (request) => (await eventHistory.read(request.params.namespace)).map((event) => eventSummary(event, event)),
  );
}
