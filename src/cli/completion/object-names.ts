import { resolve } from 'node:path';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CliIo } from '../io.ts';
import { type ClusterOptions, DEFAULT_STATE, selectsCluster } from '../cluster/options.ts';
import { lookupKind } from '../objects/kinds.ts';
import type { ParsedWords } from './words.ts';

/** Limit for listing object names, so that the shell does not hang. */
const LIST_TIMEOUT_MS = 2_000;

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

/** Names of the objects of a kind on the cluster, or in the manifests and the state folder, that the words select. */
export async function objectNames(kind: string, words: ParsedWords, io: CliIo): Promise<string[]> {
  if (actsOnCluster(words, io)) return clusterNames(kind, clusterOptions(words), io);
  const given = kind === 'agents' ? await manifestAgents(words, io).catch(() => []) : [];
  const stored = await stateNames(kind, words, io).catch(() => []);
  return [...new Set([...given, ...stored])];
}

/** The records of the state folder that the words select. */
export async function stateRecords({ values }: ParsedWords, io: CliIo): Promise<RecordStore> {
  const { openStateRecords } = await import('../state/state-records.ts');
  return openStateRecords(values.get('state') ?? DEFAULT_STATE, io);
}

/** Names of the agents in the files of `-f`, as typed so far. */
async function manifestAgents({ values }: ParsedWords, io: CliIo): Promise<string[]> {
  const file = values.get('filename');
  if (file === undefined) return [];
  const { loadManifests } = await import('../../api/manifests.ts');
  const { objects } = await loadManifests([resolve(io.cwd, file)]);
  return objects.flatMap(({ object }) => (object.kind === 'Agent' ? [object.metadata.name] : []));
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
async function stateNames(kind: string, words: ParsedWords, io: CliIo): Promise<string[]> {
  const [{ listKind }, { toolName }] = await Promise.all([
    import('../state/get.ts'),
    import('../state/state-tools.ts'),
  ]);
  const { collection } = lookupKind(kind);
  const found = await listKind(await stateRecords(words, io), collection);
  return [...new Set(found.map(({ name, value }) => (collection === 'tools' ? toolName(value) || name : name)))];
}
