import type { Events } from '../../agent/tools/events/port.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { JsonObject } from '../../lib/json.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { requireObject } from '../../gateway-api/response-parsing.ts';
import type { GatewayClient } from '../gateway-client.ts';

export interface RemoteEventsOptions {
  client: GatewayClient;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
}

/** The events of the namespace, which the gateway manages. */
export function remoteEvents({ client, deliveryToken }: RemoteEventsOptions): Events {
  const post = async (path: string, members: object, op: CallOptions): Promise<JsonObject> => {
    const body = { deliveryToken: deliveryToken(), ...members };
    return requireObject(await client.call({ method: 'POST', path, body, op }), 'event');
  };
  return {
    publish: (event, op) => post(POD_API_PATHS.events, { event }, op),
    subscribe: (subscription, op) => post(POD_API_PATHS.subscriptions, { subscription }, op),
    unsubscribe: (id, op) => post(POD_API_PATHS.endSubscription, { id }, op),
    list: (op) => post(POD_API_PATHS.listSubscriptions, {}, op),
  };
}
