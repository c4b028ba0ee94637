import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, member, textAt } from '../lib/json.ts';
import { ApiError, type ResourceType } from './client.ts';
import { apiVersionOf, collectionPath, type Query, withQuery } from './resource-path.ts';
import type { KubeObject } from './store.ts';
import type { Transport } from './transport.ts';

/** A whole list, and the version of the collection it shows. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export interface Selection {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

const PAGE = 500;
const GONE = 410;

/** Only `metadata` of the objects comes. */
export const METADATA_ONLY = {
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  watch: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
} as const;

/** The latest state of all that is selected, page by page; in one when it changed too much while the pages were read. */
export async function listAll<T extends KubeObject>(
  transport: Transport,
  type: ResourceType,
  selection: Selection,
  signal: AbortSignal,
  metadataOnly = false,
): Promise<Listed<T>> {
  const { namespace, ...query } = selection;
  const path = collectionPath(type, namespace);
  const accept = metadataOnly ? METADATA_ONLY.list : 'application/json';
  const page = (more: Query) =>
    transport.send({ method: 'GET', path: withQuery(path, { ...query, ...more }), accept }, signal);
  const items: T[] = [];
  let answer = await page({ limit: PAGE });
  for (;;) {
    items.push(...itemsOf<T>(answer, type, metadataOnly));
    const next = textAt(answer, ['metadata', 'continue']);
    if (next === '') return { items, resourceVersion: versionOf(answer, path) };
    try {
      answer = await page({ limit: PAGE, continue: next });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== GONE) throw error;
      items.length = 0;
      answer = await page({});
    }
  }
}

function itemsOf<T extends KubeObject>(answer: Json, type: ResourceType, metadataOnly: boolean): T[] {
  const items = member(answer, 'items');
  // Go writes an empty list as null.
  if (items === null) return [];
  if (!Array.isArray(items)) throw unreadable(type.plural);
  // In lists of kinds that come with Kubernetes the objects do not say what they are.
  const says = metadataOnly ? {} : { apiVersion: apiVersionOf(type), kind: type.kind };
  return items.map((item) => {
    const object = isJsonObject(item) ? { ...says, ...item } : item;
    if (!isKubeObject(object)) throw unreadable(type.plural);
    return object as T & Json;
  });
}

function versionOf(answer: Json, path: string): string {
  const version = textAt(answer, ['metadata', 'resourceVersion']);
  if (version === '') throw unreadable(path);
  return version;
}

function unreadable(what: string): TemperError {
  return new TemperError('TEMPER_KUBE_UNREACHABLE', `the list of ${what} is not one an API server sends`);
}

/** Holds for the little that the runtime itself reads. */
export function isKubeObject(value: Json | undefined): value is Json & KubeObject {
  return textAt(value, ['metadata', 'name']) !== '';
}
