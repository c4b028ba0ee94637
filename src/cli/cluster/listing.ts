import { apiVersionOf, collectionPath, objectPath, withQuery } from '../../kube/client/resource-path.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import type { CliIo } from '../io.ts';
import { nounOf } from '../objects/kinds.ts';
import type { NamedObject } from '../objects/print-objects.ts';
import { type Cluster, errorFrom, toTemperError } from './cluster.ts';
import { sendRawRequest } from './raw-request.ts';
import type { ServerTableOptions } from './server-table.ts';

/** What to read of one kind: one object, or all that match. */
export interface Listing {
  readonly type: ResourceType;
  readonly name: string | undefined;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  readonly selector: string | undefined;
}

export const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';

export function tableOptions({ type, namespace }: Listing, wide: boolean, prefixed: boolean): ServerTableOptions {
  return { wide, withNamespace: namespace === undefined, prefix: prefixed ? `${qualifiedName(type)}/` : '' };
}

export function emptyMessage(what: string, { location }: Cluster, listing: Listing | undefined): string {
  const place = listing?.namespace === undefined ? 'any namespace' : location;
  return `No ${nounOf(what)} in ${place}.\n`;
}

/** `agent.temper.dev`, as kubectl writes it. */
function qualifiedName({ kind, group }: ResourceType): string {
  return `${kind.toLowerCase()}.${group}`;
}

export function namedObject(type: ResourceType, item: Json): NamedObject {
  const value = { apiVersion: apiVersionOf(type), kind: type.kind, ...stripManagedFields(item) };
  return { kind: qualifiedName(type), name: textAt(item, ['metadata', 'name']), value };
}

/** The path of a listing with its query; `watch` adds the parameters of a watch. */
export function listingPath(
  { type, name, namespace, selector }: Listing,
  watch?: Record<string, string | boolean>,
): string {
  if (watch === undefined && name !== undefined) return objectPath(type, { namespace: namespace ?? '', name });
  const fieldSelector = name === undefined ? undefined : `metadata.name=${name}`;
  return withQuery(collectionPath(type, namespace), { labelSelector: selector, fieldSelector, ...watch });
}

export async function readListing(cluster: Cluster, listing: Listing, asTable: boolean, io: CliIo): Promise<Json> {
  const doing = `reading ${listing.type.plural}`;
  const headers = { accept: asTable ? TABLE : 'application/json' };
  const reply = await sendRawRequest(cluster.access, { method: 'GET', path: listingPath(listing), headers }, io.signal);
  if (reply.status !== 200) throw toTemperError(errorFrom(reply), doing, cluster);
  try {
    return parseUntrustedJson(reply.text);
  } catch (error) {
    throw new TemperError('TEMPER_KUBE_UNREACHABLE', `${doing}: the response is not JSON`, { cause: error });
  }
}

/** The object without `metadata.managedFields`. */
export function stripManagedFields(value: Json): JsonObject {
  if (!isJsonObject(value)) return {};
  const metadata = member(value, 'metadata');
  if (!isJsonObject(metadata)) return value;
  const { managedFields: _, ...kept } = metadata;
  return { ...value, metadata: kept };
}
