import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/escape.ts';
import { objectPath, withQuery } from '../../../kube/resource-path.ts';
import type { ResourceType } from '../../../kube/client.ts';
import type { KubeObject } from '../../../kube/store.ts';
import type { AgentStatus } from '../../../api/v1alpha1/agent.ts';
import { streamApi } from '../../cluster/api-call.ts';
import { explained, openCluster, refusalOf } from '../../cluster/cluster.ts';
import { AGENTS } from '../../cluster/cluster-kinds.ts';
import type { ClusterOptions } from '../../cluster/options.ts';
import { type CliIo, EXIT } from '../../io.ts';

export interface LogsOptions extends ClusterOptions {
  agent: string;
  container: 'agent' | 'sandbox';
  follow?: boolean;
  previous?: boolean;
  tail?: number;
}

const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
const MAX_LINE = 16_384;

/** Prints the log of a container of the agent's pod. The log is untrusted, so control characters are escaped. */
export async function logs(options: LogsOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const { namespace, kube, access, place } = cluster;
  const { agent: name, container, follow, previous, tail } = options;
  const found = await kube
    .get<KubeObject & { status?: AgentStatus }>(AGENTS, { namespace, name }, io.signal)
    .catch((error: unknown) => {
      throw explained(error, `reading agent ${name}`, cluster);
    });
  if (found === undefined) throw new TemperError('TEMPER_NOT_FOUND', `no agent "${name}" in ${place}`);
  const pod = found.status?.pod?.name;
  if (pod === undefined) {
    const message = `agent "${name}" in ${place} has no pod now: it is scaled to zero, suspended or not ready; see temper describe agent ${name}`;
    throw new TemperError('TEMPER_NOT_FOUND', message);
  }
  const query = { container, follow, previous, tailLines: tail, limitBytes: follow === true ? undefined : 16_777_216 };
  const path = withQuery(objectPath(PODS, { namespace, name: pod }, 'log'), query);
  const response = await streamApi(access, { method: 'GET', path, headers: { accept: '*/*' } }, io.signal);
  if ('errorResponse' in response)
    throw explained(refusalOf(response.errorResponse), `reading the log of pod ${pod}`, cluster);
  for await (const line of response.lines) io.out(`${printable(line, MAX_LINE)}\n`);
  return EXIT.ok;
}
