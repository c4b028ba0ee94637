import { isTemperError, TemperError } from '../../lib/errors.ts';
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

/** The number of objects per page, as in client-go. */
const MAX_PAGE_SIZE = 500;
/**
 * The maximum size of a page. etcd stores no object above 1.5 MiB, so a small page always fits, however large the objects of one tenant are.
 * Reading a page takes a multiple of this in memory.
 */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const GONE = 410;

/** The number of objects per page. Shrinks when a page was too large, and never grows; each collection has its own. */
export class PageSize {
  #limit = MAX_PAGE_SIZE;

  get limit(): number {
    return this.#limit;
  }

  /** Halves the limit; false when it was one already. */
  shrink(): boolean {
    if (this.#limit === 1) return false;
    this.#limit = Math.floor(this.#limit / 2);
    return true;
  }
}

/** Accept headers that request only the `metadata` of the objects. */
export const METADATA_ONLY = {
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  watch: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
} as const;

export interface ListOptions {
  /** Fetch only `metadata`. */
  readonly metadataOnly?: boolean | undefined;
  /** The page size of earlier lists of this collection. */
  readonly pageSize?: PageSize;
}

/**
 * Lists all selected objects page by page, in smaller pages after one that was too large. When the continue token has expired (410), lists them
 * again in a single response.
 */
export async function listAll<T extends KubeObject>(
  transport: Pick<Transport, 'send'>,
  type: ResourceType,
  selection: ObjectSelection,
  signal: AbortSignal,
  { metadataOnly = false, pageSize = new PageSize() }: ListOptions = {},
): Promise<ListResult<T>> {
  const { namespace, ...query } = selection;
  const path = collectionPath(type, namespace);
  const accept = metadataOnly ? METADATA_ONLY.list : 'application/json';
  const get = (more: QueryParameters, maxBytes?: number) => {
    const request = { method: 'GET', path: withQuery(path, { ...query, ...more }), accept } as const;
    return transport.send(maxBytes === undefined ? request : { ...request, maxResponseBytes: maxBytes }, signal);
  };
  const page = async (more: QueryParameters): Promise<Json> => {
    for (;;) {
      try {
        return await get({ ...more, limit: pageSize.limit }, MAX_PAGE_BYTES);
      } catch (error) {
        if (!isTemperError(error, 'TEMPER_KUBE_RESPONSE_TOO_LARGE') || !pageSize.shrink()) throw error;
      }
    }
  };
  const items: T[] = [];
  let list = await page({});
  for (;;) {
    items.push(...itemsOf<T>(list, type, metadataOnly));
    const next = textAt(list, ['metadata', 'continue']);
    if (next === '') return { items, resourceVersion: versionOf(list, path) };
    try {
      list = await page({ continue: next });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== GONE) throw error;
      items.length = 0;
      list = await get({});
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
