import { isJsonObject, type Json } from '../../../lib/json.ts';

export type JsonPath = readonly (string | number)[];

/** A value inside another value. */
export interface JsonNode {
  path: JsonPath;
  value: Json;
}

/** The values inside a value, breadth first, without the value itself; at most `limit`. */
export function nodesOf(root: Json, limit: number): JsonNode[] {
  const found: JsonNode[] = [];
  const queue: JsonNode[] = [{ path: [], value: root }];
  for (let node = queue.shift(); node !== undefined && found.length < limit; node = queue.shift()) {
    if (node.path.length > 0) found.push(node);
    for (const [key, value] of childrenOf(node.value)) queue.push({ path: [...node.path, key], value });
  }
  return found;
}

/** The scalars inside a value, at most `limit`. */
export function scalarsOf(root: Json, limit: number): (string | number | boolean | null)[] {
  const found: (string | number | boolean | null)[] = [];
  const stack: Json[] = [root];
  for (let item = stack.pop(); item !== undefined && found.length < limit; item = stack.pop()) {
    if (typeof item === 'object' && item !== null) stack.push(...childrenOf(item).map(([, value]) => value));
    else found.push(item);
  }
  return found;
}

/** A copy of the value with another value at the path. */
export function replaceAt(root: Json, path: JsonPath, value: Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(root)) return root.map((item, index) => (index === key ? replaceAt(item, rest, value) : item));
  if (!isJsonObject(root)) return root;
  return Object.fromEntries(
    Object.entries(root).map(([name, item]) => [name, name === key ? replaceAt(item, rest, value) : item]),
  );
}

function childrenOf(value: Json): [key: string | number, value: Json][] {
  if (Array.isArray(value)) return value.map((item, index) => [index, item]);
  return isJsonObject(value) ? Object.entries(value) : [];
}
