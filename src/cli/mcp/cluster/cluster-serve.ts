import { assertSessionId } from '../../../agent/session/session-id.ts';
import { systemClock } from '../../../lib/clock.ts';
import { ulids } from '../../../lib/ids.ts';
import { printable } from '../../../lib/printable.ts';
import { serveLines } from '../../../mcp/server/serve-lines.ts';
import { type Cluster, openCluster } from '../../cluster/cluster.ts';
import { GatewayUserClient } from '../../cluster/gateway-user-client.ts';
import type { ClusterOptions } from '../../cluster/options.ts';
import { type CliIo, EXIT, interruptExitCode, writeJsonLine } from '../../io.ts';
import { redactingIo } from '../../run/redact.ts';
import { VERSION } from '../../version.ts';
import { AskedAgent } from '../ask-agent.ts';
import { ClientTools } from '../client-tools.ts';
import { ClusterAgent } from './cluster-agent.ts';
import { ClusterCalls } from './cluster-calls.ts';
import { clusterResources } from './cluster-resources.ts';

export interface ClusterServeOptions extends ClusterOptions {
  agent: string;
  /** The session of the messages; a new one when absent. */
  session?: string;
}

/** Serves an agent of a cluster to one client over the Model Context Protocol on standard input and output, until the input ends. */
export async function clusterServe(options: ClusterServeOptions, outer: CliIo): Promise<number> {
  const { agent: name } = options;
  const session = options.session ?? ulids.next('session');
  assertSessionId(session);
  const io = redactingIo(outer);
  await using cluster = await openCluster(options, io);
  const resources = clusterResources(name, new GatewayUserClient(cluster, io.signal));
  // An agent or a permission that is missing is an error now, and not at the first message.
  await resources.list();
  const tools = new ClientTools({
    calls: new ClusterCalls({ agent: name, gateway: (signal) => gatewayFor(cluster, io, signal), io }),
    client: { session, connection: session },
    agent: askedAgent({ name, session }, cluster, io),
    now: () => systemClock.monotonic(),
    newId: () => ulids.next('call'),
    howToDecide,
  });
  const instructions = `The tools of the Temper agent ${name} of ${cluster.location}, under its policy, and the agent itself as ask_agent. A call that needs an approval fails with TEMPER_APPROVAL_PENDING and the command with which a user decides; then make the same call again, or call ask_agent without text.`;
  try {
    const deps = { lines: io.lines(), write: (message: object) => writeJsonLine(io, message) };
    await serveLines({ tools, resources, version: VERSION, instructions }, deps, io.signal);
  } finally {
    await tools.idle();
  }
  return interruptExitCode(io.signal) ?? EXIT.ok;
}

function askedAgent({ name, session }: { name: string; session: string }, cluster: Cluster, io: CliIo): AskedAgent {
  const served = new ClusterAgent({
    agent: name,
    gateway: (signal) => gatewayFor(cluster, io, signal),
    io,
    observe: (event) => asked.observe(event),
  });
  const asked: AskedAgent = new AskedAgent({
    session,
    now: () => systemClock.monotonic(),
    newId: () => ulids.next('message'),
    handle: (message, op) => served.handle(message, op),
    unended: () => served.unended(),
    howToDecide,
  });
  return asked;
}

/** A client whose requests end with the signal, and with the process. */
function gatewayFor(cluster: Cluster, io: CliIo, signal: AbortSignal): GatewayUserClient {
  return new GatewayUserClient(cluster, AbortSignal.any([io.signal, signal]));
}

function howToDecide(request: string): string {
  return `kubectl temper approve ${printable(request, 253)} --reason … (or kubectl temper deny)`;
}
