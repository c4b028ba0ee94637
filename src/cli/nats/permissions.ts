import { accountConfig, accountUsers } from '../../nats/server/server-config.ts';
import { type CliIo, EXIT } from '../io.ts';

export interface NatsPermissionsOptions {
  operatorKey?: string;
  gatewayKey?: string;
  output: 'text' | 'json';
}

/** Prints the account from the source of the generated configuration. Throws TEMPER_USAGE for an invalid key. */
export function natsPermissions({ operatorKey, gatewayKey, output }: NatsPermissionsOptions, io: CliIo): number {
  const keys = { operator: operatorKey, gateway: gatewayKey };
  io.out(output === 'json' ? `${JSON.stringify(accountUsers(keys), undefined, 2)}\n` : accountConfig(keys));
  return EXIT.ok;
}
