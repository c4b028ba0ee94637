import { type Json, isJsonObject, type JsonObject } from '../../../src/lib/json.ts';
import { type Draw, hostileName, hostileText, hostileValue, oneOf, type Raw } from './hostile-values.ts';

/** A sample object after a few changes, as text: JavaScript cannot represent all of the resulting JSON. */
export interface Mutant {
  /** The changes, for the failure message. */
  readonly changes: readonly string[];
  readonly text: string;
}

type Node = Json | Raw | Tree;
/** An object or a list. */
interface Tree {
  [member: string | number]: Node;
}
type Path = readonly (string | number)[];

interface Change {
  readonly description: string;
  readonly apply: (parent: Tree, key: string | number) => void;
}

/** Applies one to three changes below the given roots. The name stays the same unless a change targets it. */
export function mutate(sample: JsonObject, draw: Draw, roots: readonly string[] = ['spec', 'metadata', '']): Mutant {
  const object: Tree = structuredClone(sample);
  const changes: string[] = [];
  const count = oneOf(draw, [1, 1, 1, 2, 3]);
  for (let at = 0; at < count; at += 1) changes.push(changeOnce(object, draw, roots));
  return { changes, text: jsonText(object) };
}

/** JSON text in which an object may have a duplicate member name. */
export function jsonText(value: Node): string {
  if (isRaw(value)) return value.raw;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name.replace(DUPLICATE_MARK, ''))}:${jsonText(member)}`)
    .join(',')}}`;
}

/** Marks a duplicate member name. */
const DUPLICATE_MARK = '\u0001twice';

function changeOnce(object: Tree, draw: Draw, roots: readonly string[]): string {
  const root = oneOf(draw, roots);
  // resourceVersion is excluded: clients copy it from the server, users do not write it.
  const all = pathsOf(object).filter((path) => path.length > 0 && path.at(-1) !== 'resourceVersion');
  const beneath = all.filter((path) => root === '' || path[0] === root);
  const path = oneOf(draw, beneath.length > 0 ? beneath : all);
  const parent = path.slice(0, -1).reduce<Tree>((at, key) => at[key] as Tree, object);
  const key = path.at(-1) ?? '';
  const { description, apply } = changeOf(parent[key] ?? null, draw);
  apply(parent, key);
  return `${path.join('.')}: ${description}`;
}

function changeOf(value: Node, draw: Draw): Change {
  const general = [replaced, removed, renamed, duplicated];
  if (typeof value === 'string') {
    return oneOf(draw, [replaced, otherText, otherText, otherText, (drawn: Draw) => lengthened(drawn, value), removed])(
      draw,
    );
  }
  if (Array.isArray(value)) return oneOf(draw, [...general, repeated, repeated, appended])(draw);
  if (isJsonObject(value)) return oneOf(draw, [...general, added, added, added])(draw);
  return oneOf(draw, [replaced, replaced, removed])(draw);
}

function replaced(draw: Draw): Change {
  const value = hostileValue(draw);
  return { description: `replaced by ${excerpt(value)}`, apply: (parent, key) => void (parent[key] = value) };
}

function removed(): Change {
  return {
    description: 'removed',
    apply: (parent, key) => (Array.isArray(parent) ? void parent.splice(Number(key), 1) : void delete parent[key]),
  };
}

function renamed(draw: Draw): Change {
  const name = hostileName(draw);
  return {
    description: `renamed ${name}`,
    apply: (parent, key) => {
      const value = parent[key] ?? null;
      delete parent[key];
      put(parent, name, value);
    },
  };
}

/** Adds the same name a second time with another value. */
function duplicated(draw: Draw): Change {
  const value = hostileValue(draw);
  return {
    description: `duplicated with ${excerpt(value)}`,
    apply: (parent, key) =>
      Array.isArray(parent) ? void parent.push(value) : put(parent, `${key}${DUPLICATE_MARK}`, value),
  };
}

function added(draw: Draw): Change {
  const name = hostileName(draw);
  const value = hostileValue(draw);
  return {
    description: `member ${name} added: ${excerpt(value)}`,
    apply: (parent, key) => put(parent[key] as Tree, name, value),
  };
}

function otherText(draw: Draw): Change {
  const text = hostileText(draw);
  return { description: `text ${excerpt(text)}`, apply: (parent, key) => void (parent[key] = text) };
}

function lengthened(draw: Draw, text: string): Change {
  const end = hostileText(draw);
  return {
    description: `followed by ${excerpt(end)}`,
    apply: (parent, key) => void (parent[key] = `${text}${end}`),
  };
}

/** Repeats the entries of a list, which may have to be unique. */
function repeated(draw: Draw): Change {
  const times = oneOf(draw, [1, 2, 150]);
  return {
    description: `entries repeated ${times} times`,
    apply: (parent, key) => {
      const entries = parent[key] as Node[];
      parent[key] = Array.from({ length: times + 1 }, () => structuredClone(entries)).flat() as Json;
    },
  };
}

function appended(draw: Draw): Change {
  const value = hostileValue(draw);
  return {
    description: `entry added: ${excerpt(value)}`,
    apply: (parent, key) => void (parent[key] as Node[]).push(value),
  };
}

/** Defines an own property, so that names like `__proto__` have no special effect. */
function put(target: Tree, name: string, value: Node): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function pathsOf(value: Node, path: Path = []): Path[] {
  if (isRaw(value)) return [path];
  const entries: [string | number, Json][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : isJsonObject(value)
      ? Object.entries(value)
      : [];
  return [path, ...entries.flatMap(([key, child]) => pathsOf(child, [...path, key]))];
}

function isRaw(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === 'raw';
}

function excerpt(value: Node): string {
  const text = isRaw(value) ? value.raw : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text;
}
