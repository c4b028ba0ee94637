import type { UsageBreakdown } from '../../gateway-api/user-api.ts';
import { openCluster } from '../cluster/cluster.ts';
import { GatewayUserClient } from '../cluster/gateway-user-client.ts';
import type { ClusterOptions } from '../cluster/options.ts';
import { type CliIo, EXIT } from '../io.ts';
import { type BreakdownOptions, firstDay } from './breakdown-options.ts';
import { printBreakdown } from './print-breakdown.ts';

/** Prints what the calls of an agent and of those below it were charged; without an agent, those of the namespace. */
export async function clusterBreakdown(
  options: BreakdownOptions & ClusterOptions & { agent: string | undefined },
  io: CliIo,
): Promise<number> {
  const { agent, by, since, output } = options;
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const of = agent === undefined ? '' : `agents/${encodeURIComponent(agent)}/`;
  const path = `${of}charges?by=${by}&since=${firstDay(since, new Date())}`;
  const found = await gateway.call({ method: 'GET', path });
  printBreakdown(found as unknown as UsageBreakdown, output, io);
  return EXIT.ok;
}
