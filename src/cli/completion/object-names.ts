import type { CliIo } from '../io.ts';
import { type ClusterOptions, selectsCluster } from '../cluster/options.ts';
import { lookupKind } from '../objects/kinds.ts';
import type { ParsedWords } from './words.ts';

/** Limit for listing object names, so that the shell does not hang. */
const LIST_TIMEOUT_MS = 2_000;
const DEFAULT_STATE = '.temper';

/** The options that select a cluster, as typed so far. */
function clusterOptions({ values }: ParsedWords): ClusterOptions {
  const [kubeconfig, context, namespace] = ['kubeconfig', 'context', 'namespace'].map((name) => values.get(name));
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

/** Does the command, as typed so far, act on a cluster? A verb without a state folder always does. */
export function actsOnCluster(words: ParsedWords, io: CliIo): boolean {
  const hasState = words.command.options.some(({ long }) => long === '--state');
  const hasCluster = words.command.options.some(({ long }) => long === '--kubeconfig');
  return hasCluster && (!hasState || selectsCluster(clusterOptions(words), io));
}

/** Names of the objects of a kind on the cluster or in the state folder that the words select. */
export async function objectNames(kind: string, words: ParsedWords, io: CliIo): Promise<string[]> {
  return actsOnCluster(words, io) ? clusterNames(kind, clusterOptions(words), io) : stateNames(kind, words, io);
}

async function clusterNames(kind: string, options: ClusterOptions, io: CliIo): Promise<string[]> {
  const [{ openCluster }, { clusterKind }] = await Promise.all([
    import('../cluster/cluster.ts'),
    import('../cluster/cluster-kinds.ts'),
  ]);
  await using cluster = await openCluster(options, io);
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
  const found = await cluster.kube.list(clusterKind(kind), { namespace: cluster.namespace }, signal);
  return found.map(({ metadata }) => metadata.name);
}

/** Tools have the name that models use beside the name of the object; the shorter one is what users type. */
async function stateNames(kind: string, { values }: ParsedWords, io: CliIo): Promise<string[]> {
  const [{ listKind }, { openStateRecords }, { toolName }] = await Promise.all([
    import('../state/get.ts'),
    import('../state/state-records.ts'),
    import('../state/state-tools.ts'),
  ]);
  const { collection } = lookupKind(kind);
  const records = await openStateRecords(values.get('state') ?? DEFAULT_STATE, io);
  const found = await listKind(records, collection);
  return [...new Set(found.map(({ name, value }) => (collection === 'tools' ? toolName(value) || name : name)))];
}
