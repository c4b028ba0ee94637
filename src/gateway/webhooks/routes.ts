import { Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { WebhookLimits } from '../../events/webhook/limits.ts';
import { MAX_WEBHOOK_BODY_BYTES, WEBHOOKS_PATH, webhookEvent } from '../../events/webhook/request.ts';
import { AgentName } from '../../gateway-api/schema-parts.ts';
import { TemperError } from '../../lib/errors.ts';
import type { GatewayServer, RouteModule } from '../http/routes.ts';
import { ERROR_RESPONSES } from '../http/schemas.ts';
import { Namespace } from '../users/messages.ts';
import type { WebhookKeys } from './keys.ts';
import { verifyWebhook } from './verify.ts';

const MAX_VALUES = 5_000;

const Params = Type.Object({
  namespace: Namespace,
  agent: AgentName,
  trigger: Type.String({ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 40 }),
});
const Receipt = Type.Object(
  {
    id: Type.String({ description: 'Id of the event.' }),
    messages: Type.Integer({ description: '1 when the agent has a message.' }),
  },
  { ...closed, description: 'The request was accepted.' },
);

/** Requests from outside that are signed with the key of one trigger. They are counted before anything of them is read or verified. */
export function webhookRoutes(keys: Pick<WebhookKeys, 'of'>): RouteModule {
  return (server: GatewayServer, deps) => {
    const limits = new WebhookLimits(deps.clock);
    server.post(
      `${WEBHOOKS_PATH}/:namespace/:agent/:trigger`,
      {
        config: { access: 'anyone', rawBody: true, maxValues: MAX_VALUES },
        bodyLimit: MAX_WEBHOOK_BODY_BYTES,
        onRequest: async ({ params, socket }) => limits.take(socket.remoteAddress ?? '', params),
        schema: {
          summary: 'A signed request from outside',
          params: Params,
          response: { 202: Receipt, ...ERROR_RESPONSES },
        },
      },
      async (request, reply) => {
        const { params, headers } = request;
        const body = typeof request.body === 'string' ? request.body : '';
        const { state, id } = verifyWebhook(params, { headers, body }, { ...deps, keys });
        const event = webhookEvent(params, state.uid, { id, body }, deps.clock);
        const { namespace, trigger } = params;
        const added = { namespace, ownerUid: state.uid, event, trigger };
        const { messages, full } = await deps.namespaceEvents.publish(added);
        if (full > 0) {
          throw new TemperError('TEMPER_BUS_FULL', 'the inbox of the agent is full; send the request again later');
        }
        return reply.code(202).send({ id: event.id, messages });
      },
    );
  };
}
