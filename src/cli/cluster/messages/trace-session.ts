import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { openCluster } from '../cluster.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';
import { linePrinter } from './follow.ts';
import { behind, eventsPath, type LinePosition, positionQuery, streamLines } from './message-lines.ts';

interface TraceSessionOptions extends ClusterOptions {
  session: string;
  agent?: string;
  output: 'text' | 'json';
}

const START: LinePosition = { after: 0, skip: 0 };

/** Prints what is stored of a session of an agent: messages, events and replies of the last day. */
export async function traceSession(
  { session, agent, output, ...options }: TraceSessionOptions,
  io: CliIo,
): Promise<number> {
  if (agent === undefined) throw new TemperError('TEMPER_USAGE', 'name the agent of the session with --agent');
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  const print = linePrinter(agent, output, io);
  let position = START;
  // A connection may break: the end is reached when a further one has nothing new.
  for (let resumed: LinePosition | undefined; position !== resumed; ) {
    const isFirst = resumed === undefined;
    resumed = position;
    const query = new URLSearchParams(positionQuery(resumed));
    for await (const line of streamLines(await gateway.lines(`${eventsPath(agent, session)}?${query.toString()}`))) {
      const next = behind(line, position);
      if (isFirst || next !== position) print(line);
      position = next;
    }
  }
  if (position !== START) return EXIT.ok;
  const name = `session "${printable(session, 128)}" of agent "${printable(agent, 63)}"`;
  throw new TemperError('TEMPER_NOT_FOUND', `no events of ${name} are stored; they are kept for a day`);
}
