import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, member, textAt } from '../../lib/json.ts';
import { ApiError, type ResourceType } from './kube-client.ts';
import { apiVersionOf, collectionPath, type QueryParameters, withQuery } from './resource-path.ts';
import type { KubeObject } from '../informer/store.ts';
import type { Transport } from './transport.ts';

/** A complete list, and the resourceVersion of the collection at which it was read. */
export interface ListResult<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export interface ObjectSelection {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

const PAGE_SIZE = 500;
const GONE = 410;

/** Accept headers that request only the `metadata` of the objects. */
export const METADATA_ONLY = {
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  watch: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
} as const;

/** Lists all selected objects page by page. When the continue token has expired (410), lists them again in a single response. */
export async function listAll<T extends KubeObject>(
  transport: Transport,
  type: ResourceType,
  selection: ObjectSelection,
  signal: AbortSignal,
  metadataOnly = false,
): Promise<ListResult<T>> {
  const { namespace, ...query } = selection;
  const path = collectionPath(type, namespace);
  const accept = metadataOnly ? METADATA_ONLY.list : 'application/json';
  const page = (more: QueryParameters) =>
    transport.send({ method: 'GET', path: withQuery(path, { ...query, ...more }), accept }, signal);
  const items: T[] = [];
  let list = await page({ limit: PAGE_SIZE });
  for (;;) {
    items.push(...itemsOf<T>(list, type, metadataOnly));
    const next = textAt(list, ['metadata', 'continue']);
    if (next === '') return { items, resourceVersion: versionOf(list, path) };
    try {
      list = await page({ limit: PAGE_SIZE, continue: next });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== GONE) throw error;
      items.length = 0;
      list = await page({});
    }
  }
}

function itemsOf<T extends KubeObject>(list: Json, type: ResourceType, metadataOnly: boolean): T[] {
  const items = member(list, 'items');
  // Go encodes a nil slice as null.
  if (items === null) return [];
  if (!Array.isArray(items)) throw unreadable(type.plural);
  // In lists of built-in kinds the items have no apiVersion and kind.
  const typeMeta = metadataOnly ? {} : { apiVersion: apiVersionOf(type), kind: type.kind };
  return items.map((item) => {
    const object = isJsonObject(item) ? { ...typeMeta, ...item } : item;
    if (!isKubeObject(object)) throw unreadable(type.plural);
    return object as T & Json;
  });
}

function versionOf(list: Json, path: string): string {
  const version = textAt(list, ['metadata', 'resourceVersion']);
  if (version === '') throw unreadable(path);
  return version;
}

function unreadable(what: string): TemperError {
  return new TemperError('TEMPER_KUBE_UNREACHABLE', `the list of ${what} from the API server is malformed`);
}

/** Checks only that the object has a name, the one field that the runtime requires. */
export function isKubeObject(value: Json | undefined): value is Json & KubeObject {
  return textAt(value, ['metadata', 'name']) !== '';
}
