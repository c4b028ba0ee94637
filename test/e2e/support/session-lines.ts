import { openCluster } from '../../../src/cli/cluster/cluster.ts';
import { PeopleGateway } from '../../../src/cli/cluster/people-gateway.ts';
import type { CliIo } from '../../../src/cli/io.ts';
import type { FollowLine } from '../../../src/remote/people.ts';

/** Reads all stored lines of a session through the user API. */
export async function readSessionLines(
  kubeconfig: string,
  { namespace, agent, session }: { namespace: string; agent: string; session: string },
): Promise<FollowLine[]> {
  const signal = AbortSignal.timeout(60_000);
  await using cluster = await openCluster({ kubeconfig, namespace }, quietIo(signal));
  const gateway = new PeopleGateway(cluster, signal);
  const lines: FollowLine[] = [];
  for await (const line of await gateway.lines(`agents/${agent}/sessions/${session}/events?after=0`)) {
    if (line.trim() !== '') lines.push(JSON.parse(line) as FollowLine);
  }
  return lines;
}

function quietIo(signal: AbortSignal): CliIo {
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
