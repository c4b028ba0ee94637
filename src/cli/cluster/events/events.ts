import { isJsonObject, member, textAt } from '../../../lib/json.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { formatAge, formatCell, table } from '../../table.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';

interface EventsOptions extends ClusterOptions {
  output: 'text' | 'json';
}

/** Lists the latest events of a namespace, oldest first. */
export async function events(options: EventsOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const response = await new GatewayUserClient(cluster, io.signal).call({ method: 'GET', path: 'events' });
  const found = (Array.isArray(response) ? response : []).filter(isJsonObject);
  if (options.output === 'json') {
    for (const event of found) writeJsonLine(io, event);
    return EXIT.ok;
  }
  if (found.length === 0) {
    io.out(`No events in ${cluster.location}.\n`);
    return EXIT.ok;
  }
  const now = new Date();
  const rows = found.map((event) => [
    textAt(event, ['subject']),
    textAt(event, ['source']),
    textAt(event, ['agent']),
    formatCell(member(event, 'messages')),
    formatCell(member(event, 'refused')),
    formatAge(textAt(event, ['time']), now),
    textAt(event, ['excerpt']).slice(0, 60),
  ]);
  io.out(table(['SUBJECT', 'SOURCE', 'AGENT', 'MESSAGES', 'REFUSED', 'AGE', 'DATA'], rows));
  return EXIT.ok;
}
