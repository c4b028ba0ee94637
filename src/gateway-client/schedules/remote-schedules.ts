import type { OwnSchedules } from '../../agent/tools/schedules/port.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { requireObject, requireText } from '../../gateway-api/response-parsing.ts';
import type { GatewayClient } from '../gateway-client.ts';

export interface RemoteSchedulesOptions {
  client: GatewayClient;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
}

/** The schedules that the agent of this pod made, which the gateway stores and the operator runs. */
export function remoteSchedules({ client, deliveryToken }: RemoteSchedulesOptions): OwnSchedules {
  return {
    async create(input, op) {
      const body = { deliveryToken: deliveryToken(), input };
      const path = POD_API_PATHS.schedules;
      const created = requireObject(await client.call({ method: 'POST', path, body, op }), 'schedule');
      return {
        name: requireText(created, 'name', 'schedule'),
        nextRun: requireText(created, 'nextRun', 'schedule'),
      };
    },
    async delete(name, op) {
      const body = { deliveryToken: deliveryToken(), name };
      await client.call({ method: 'POST', path: POD_API_PATHS.deleteSchedule, body, op });
    },
    async list(op) {
      const body = { deliveryToken: deliveryToken() };
      const path = POD_API_PATHS.listSchedules;
      return requireObject(await client.call({ method: 'POST', path, body, op }), 'schedules');
    },
  };
}
