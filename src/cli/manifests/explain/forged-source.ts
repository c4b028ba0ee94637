import type { LoadedManifests } from '../../../api/manifests.ts';
import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import { printable } from '../../../lib/printable.ts';
import type { PolicySnapshot } from '../../../policy/types.ts';
import { openCluster } from '../../cluster/cluster.ts';
import { DEFAULT_STATE, selectsCluster } from '../../cluster/options.ts';
import { clusterTools } from '../../cluster/verbs/tool-export.ts';
import type { CliIo } from '../../io.ts';
import { namespaceOf } from '../policy-snapshot.ts';
import { usageError } from '../policy-question.ts';
import type { ForgedSource } from './asked-tool.ts';
import { objectTools, storedTools } from './forged-tools.ts';

interface SourceOptions {
  category?: string;
  session?: string;
  kubeconfig?: string;
  context?: string;
}

interface Explained {
  snapshot: Pick<PolicySnapshot, 'agent'>;
  objects: readonly LoadedManifests['objects'][number]['object'][];
  /** The state folder of a run; absent for a pod. */
  state: string | undefined;
}

/**
 * Where the forged tools of the agent are: for a run in its state folder, and for a pod among the EmergentTools of the manifests and of the
 * cluster, if the command acts on one. Throws TEMPER_USAGE for a run on a cluster.
 */
export function forgedSource(
  { category, session, kubeconfig, context }: SourceOptions,
  { snapshot: { agent }, objects, state }: Explained,
  io: CliIo,
): ForgedSource {
  const { name, namespace } = agent;
  const given = objects.filter((one): one is EmergentTool => one.kind === 'EmergentTool');
  const own = given.filter((one) => namespaceOf(one) === namespace);
  const cluster = {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  };
  if (state !== undefined) {
    if (kubeconfig !== undefined || context !== undefined)
      throw usageError(
        '--workspace decides as temper run, which is on no cluster; leave out --kubeconfig and --context',
      );
    const where = `in ${printable(state, 400)}${session === undefined ? '' : ` for session "${session}"`}`;
    const note = own.length === 0 ? '' : ' (temper run ignores the EmergentTools of the manifests)';
    return { where: `${where}${note}`, tools: () => storedTools(state, { agent: name, namespace, session }, io) };
  }
  // A category says that the user knows of no such tool.
  if (category !== undefined || !selectsCluster(cluster, io))
    return {
      where: 'in the manifests; add its EmergentTool with -f',
      tools: async () => objectTools(own, name),
      // What cannot be read has nothing to suggest; with --workspace the command says why.
      ofRuns: () => storedTools(DEFAULT_STATE, { agent: name, namespace, session: undefined }, io).catch(() => []),
    };
  const written = objects.find(
    (one) => one.kind === 'Agent' && one.metadata.name === name && namespaceOf(one) === namespace,
  );
  return {
    where: 'in the manifests or in the namespace of the cluster, where the tools of open sessions are not objects',
    async tools() {
      // Without a namespace of their own, manifests are for that of the context.
      const inNamespace = written?.metadata.namespace === undefined ? {} : { namespace };
      await using opened = await openCluster({ ...cluster, ...inNamespace }, io);
      const stored = await clusterTools(opened, io);
      return objectTools([...own, ...stored], name);
    },
  };
}
