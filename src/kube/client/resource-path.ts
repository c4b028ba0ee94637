import type { ObjectRef, ResourceType } from './kube-client.ts';

export type QueryParameters = Readonly<Record<string, string | number | boolean | undefined>>;

/** `apiVersion` as in a manifest: `resourceType('apps/v1', 'deployments', 'Deployment')`. */
export function resourceType(apiVersion: string, plural: string, kind: string, namespaced = true): ResourceType {
  const slash = apiVersion.lastIndexOf('/');
  const group = slash === -1 ? '' : apiVersion.slice(0, slash);
  return { group, version: apiVersion.slice(slash + 1), plural, kind, namespaced };
}

export function apiVersionOf({ group, version }: ResourceType): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The path of all objects of the resource, or of those in one namespace. */
export function collectionPath(type: ResourceType, namespace?: string): string {
  const root = type.group === '' ? '/api' : `/apis/${segment(type.group)}`;
  const within = type.namespaced && namespace !== undefined ? `/namespaces/${segment(namespace)}` : '';
  return `${root}/${segment(type.version)}${within}/${segment(type.plural)}`;
}

/** The path of one object. Throws RangeError for a name or namespace that would lead to another path. */
export function objectPath(type: ResourceType, ref: ObjectRef, subresource?: string): string {
  if (type.namespaced && (ref.namespace ?? '') === '') {
    throw new RangeError(`${type.plural} ${ref.name}: an object of a namespaced kind needs a namespace`);
  }
  const path = `${collectionPath(type, ref.namespace)}/${segment(ref.name)}`;
  return subresource === undefined ? path : `${path}/${segment(subresource)}`;
}

/** Omits undefined parameters. */
export function withQuery(path: string, query: QueryParameters): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Encodes a name as exactly one path segment, against path traversal. */
function segment(text: string): string {
  if (text === '' || text === '.' || text === '..' || text.includes('/')) {
    throw new RangeError(`${JSON.stringify(text)} is not a valid path segment`);
  }
  return encodeURIComponent(text);
}
