import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { objectPath, withQuery, resourceType } from '../../../kube/client/resource-path.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import type { AgentStatus } from '../../../api/v1alpha1/agent.ts';
import { streamRawRequest } from '../raw-request.ts';
import { toTemperError, openCluster, errorFrom } from '../cluster.ts';
import { AGENTS } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { type CliIo, EXIT } from '../../io.ts';

export interface LogsOptions extends ClusterOptions {
  agent: string;
  container: 'agent' | 'sandbox';
  follow?: boolean;
  previous?: boolean;
  tail?: number;
}

const PODS = resourceType('v1', 'pods', 'Pod');
const MAX_LINE = 16_384;

/** Prints the log of a container of the agent's pod. The log is untrusted, so control characters are escaped. */
export async function logs(options: LogsOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const { namespace, kube, access, location } = cluster;
  const { agent: name, container, follow, previous, tail } = options;
  const found = await kube
    .get<KubeObject & { status?: AgentStatus }>(AGENTS, { namespace, name }, io.signal)
    .catch((error: unknown) => {
      throw toTemperError(error, `reading agent ${name}`, cluster);
    });
  if (found === undefined) throw new TemperError('TEMPER_NOT_FOUND', `no agent "${name}" in ${location}`);
  const pod = found.status?.pod?.name;
  if (pod === undefined) {
    const message = `agent "${name}" in ${location} has no pod now: it is scaled to zero, suspended or not ready; see temper describe agent ${name}`;
    throw new TemperError('TEMPER_NOT_FOUND', message);
  }
  const query = { container, follow, previous, tailLines: tail, limitBytes: follow === true ? undefined : 16_777_216 };
  const path = withQuery(objectPath(PODS, { namespace, name: pod }, 'log'), query);
  const response = await streamRawRequest(access, { method: 'GET', path, headers: { accept: '*/*' } }, io.signal);
  if ('errorResponse' in response)
    throw toTemperError(errorFrom(response.errorResponse), `reading the log of pod ${pod}`, cluster);
  for await (const line of response.lines) io.out(`${printable(line, MAX_LINE)}\n`);
  return EXIT.ok;
}
