import type { ResourceType } from '../../../kube/client/kube-client.ts';
import { TemperError } from '../../../lib/errors.ts';
import { member } from '../../../lib/json.ts';
import { type Cluster, openCluster } from '../cluster.ts';
import { CLUSTER_KINDS, clusterKind } from '../cluster-kinds.ts';
import { emptyMessage, type Listing, namedObject, readListing, tableOptions } from '../listing.ts';
import type { ClusterOptions } from '../options.ts';
import { ServerTable } from '../server-table.ts';
import { watchKind } from '../watch.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { isDataFormat, type ListFormat } from '../../objects/output-formats.ts';
import { type NamedObject, printObjects } from '../../objects/print-objects.ts';
import { parseTargets, type Targets } from '../../objects/targets.ts';

export interface ClusterGetOptions extends ClusterOptions {
  /** Kinds and names as typed; see `parseTargets`. */
  targets: readonly string[];
  selector?: string;
  allNamespaces?: boolean;
  watch?: boolean;
  output: ListFormat;
}

/** Lists kinds with the columns of the API server, or the objects themselves; with `watch`, then prints each change. */
export async function clusterGet(options: ClusterGetOptions, io: CliIo): Promise<number> {
  const targets = parseTargets(options.targets, CLUSTER_KINDS);
  const types = targets.kinds.map(clusterKind);
  assertCombination(options, targets);
  await using cluster = await openCluster(options, io);
  const namespace = options.allNamespaces === true ? undefined : cluster.namespace;
  const names = targets.names.length === 0 ? [undefined] : targets.names;
  const listings = types.flatMap((type) =>
    names.map((name): Listing => ({ type, name, namespace, selector: options.selector })),
  );
  const [listing] = listings;
  if (options.watch === true && listing !== undefined) return await watchKind(cluster, listing, options.output, io);
  if (isDataFormat(options.output)) {
    const objects: NamedObject[] = [];
    for (const one of listings) objects.push(...(await readObjects(cluster, one, io)));
    printObjects(objects, options.output, listings.length === 1 && listing?.name !== undefined, io);
    return EXIT.ok;
  }
  await printTables(cluster, listings, { wide: options.output === 'wide', prefixed: types.length > 1 }, io);
  return EXIT.ok;
}

function assertCombination(options: ClusterGetOptions, { kinds, names }: Targets): void {
  const refuse = (message: string): never => {
    throw new TemperError('TEMPER_USAGE', message);
  };
  if (options.allNamespaces === true && names.length > 0)
    refuse('a name needs one namespace: use -n NAMESPACE instead of -A');
  if (options.selector !== undefined && names.length > 0) refuse('use names or --selector, not both');
  if (options.watch === true && (kinds.length > 1 || names.length > 1))
    refuse('--watch follows one kind, or one object');
}

async function printTables(
  cluster: Cluster,
  listings: readonly Listing[],
  { wide, prefixed }: { wide: boolean; prefixed: boolean },
  io: CliIo,
): Promise<void> {
  const tables = new Map<ResourceType, ServerTable>();
  for (const listing of listings) {
    const { type } = listing;
    const response = await readListing(cluster, listing, true, io);
    const table = tables.get(type) ?? new ServerTable(response, tableOptions(listing, wide, prefixed));
    tables.set(type, table);
    table.add(response);
  }
  const texts = [...tables.values()].filter(({ isEmpty }) => !isEmpty).map((table) => table.text());
  const [listing] = listings;
  const what = tables.size === 1 ? (listing?.type.plural ?? '') : 'objects';
  io.out(texts.length === 0 ? emptyMessage(what, cluster, listing) : texts.join('\n'));
}

async function readObjects(cluster: Cluster, listing: Listing, io: CliIo): Promise<NamedObject[]> {
  const response = await readListing(cluster, listing, false, io);
  const items = listing.name === undefined ? member(response, 'items') : [response];
  return (Array.isArray(items) ? items : []).map((item) => namedObject(listing.type, item));
}
