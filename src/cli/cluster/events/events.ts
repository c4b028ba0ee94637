import { type EventsOutput, printEvents } from '../../events/print-events.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';

interface EventsOptions extends ClusterOptions {
  output: EventsOutput;
}

/** Lists the latest events of a namespace, oldest first. */
export async function events(options: EventsOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const response = await new GatewayUserClient(cluster, io.signal).call({ method: 'GET', path: 'events' });
  printEvents(Array.isArray(response) ? response : [], cluster.location, options.output, io);
  return EXIT.ok;
}
