import { openCluster } from '../../../src/cli/cluster/cluster.ts';
import { GatewayUserClient } from '../../../src/cli/cluster/gateway-user-client.ts';
import type { CliIo } from '../../../src/cli/io.ts';
import type { SessionStreamLine } from '../../../src/gateway-api/user-api.ts';

/** Reads all stored lines of a session through the user API. */
export async function readSessionLines(
  kubeconfig: string,
  { namespace, agent, session }: { namespace: string; agent: string; session: string },
): Promise<SessionStreamLine[]> {
  const signal = AbortSignal.timeout(60_000);
  await using cluster = await openCluster({ kubeconfig, namespace }, quietIo(signal));
  const gateway = new GatewayUserClient(cluster, signal);
  const lines: SessionStreamLine[] = [];
  for await (const line of await gateway.lines(`agents/${agent}/sessions/${session}/events?after=0`)) {
    if (line.trim() !== '') lines.push(JSON.parse(line) as SessionStreamLine);
  }
  return lines;
}

/** Prints nothing and reads nothing. */
export function quietIo(signal: AbortSignal): CliIo {
  return {
    out: () => undefined,
    error: () => undefined,
    stdin: () => Promise.resolve(''),
    lines: async function* none() {},
    cwd: process.cwd(),
    environment: {},
    terminal: false,
    colour: false,
    signal,
  };
}
