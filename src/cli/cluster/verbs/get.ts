import { apiVersionOf, collectionPath, objectPath } from '../../../kube/client/resource-path.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, parseUntrustedJson, textAt } from '../../../lib/json.ts';
import { sendRawRequest } from '../raw-request.ts';
import { type Cluster, toTemperError, openCluster, errorFrom } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { formatCell, table } from '../../table.ts';

export interface ClusterGetOptions extends ClusterOptions {
  kind: string;
  name?: string | undefined;
  output: 'text' | 'json' | 'wide';
}

const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';

/** Lists a kind with the columns of the API server, or as JSON lines. */
export async function clusterGet(options: ClusterGetOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const type = clusterKind(options.kind);
  const { namespace } = cluster;
  const path =
    options.name === undefined ? collectionPath(type, namespace) : objectPath(type, { namespace, name: options.name });
  const asTable = options.output !== 'json';
  const response = await read(cluster, path, asTable, `reading ${type.plural}`, io);
  if (!asTable) {
    const items = options.name === undefined ? itemsOf(response) : [response];
    for (const item of items)
      writeJsonLine(io, { apiVersion: apiVersionOf(type), kind: type.kind, ...stripManagedFields(item) });
    return EXIT.ok;
  }
  const text = formatTable(response, options.output === 'wide');
  io.out(text ?? `No ${type.plural} in ${cluster.location}.\n`);
  return EXIT.ok;
}

async function read(cluster: Cluster, path: string, asTable: boolean, doing: string, io: CliIo): Promise<Json> {
  const call = { method: 'GET', path, headers: { accept: asTable ? TABLE : 'application/json' } } as const;
  const reply = await sendRawRequest(cluster.access, call, io.signal);
  if (reply.status !== 200) throw toTemperError(errorFrom(reply), doing, cluster);
  try {
    return parseUntrustedJson(reply.text);
  } catch (error) {
    throw new TemperError('TEMPER_KUBE_UNREACHABLE', `${doing}: the response is not JSON`, { cause: error });
  }
}

/** Formats a Table response; undefined when it has no rows. */
function formatTable(response: Json, wide: boolean): string | undefined {
  const columns = listOf(response, 'columnDefinitions');
  const rows = listOf(response, 'rows');
  if (rows.length === 0) return undefined;
  const shown = columns.flatMap((column, index) =>
    wide || member(column, 'priority') === 0 ? [{ index, heading: textAt(column, ['name']).toUpperCase() }] : [],
  );
  const cells = rows.map((row) => {
    const values = listOf(row, 'cells');
    return shown.map(({ index }) => formatCell(values[index], ''));
  });
  const headings = shown.map(({ heading }) => heading);
  return table(headings, cells);
}

function listOf(value: Json, key: string): Json[] {
  const found = member(value, key);
  return Array.isArray(found) ? found : [];
}

function itemsOf(response: Json): Json[] {
  return listOf(response, 'items');
}

/** The object without `metadata.managedFields`. */
export function stripManagedFields(value: Json): JsonObject {
  if (!isJsonObject(value)) return {};
  const metadata = member(value, 'metadata');
  if (!isJsonObject(metadata)) return value;
  const { managedFields: _, ...kept } = metadata;
  return { ...value, metadata: kept };
}
