import { type Json, isJsonObject, type JsonObject } from '../../src/lib/json.ts';
import { type Draw, hostileName, hostileText, hostileValue, oneOf, type Raw } from './hostile-values.ts';

/** An object of a sample after a few changes, as text: not all of it is JSON that JavaScript could hold. */
export interface Mutant {
  /** What was changed, for whoever has to understand a failure. */
  readonly changes: readonly string[];
  readonly text: string;
}

type Node = Json | Raw | Tree;
/** An object or a list: what has members. */
interface Tree {
  [member: string | number]: Node;
}
type Path = readonly (string | number)[];

interface Change {
  readonly what: string;
  readonly apply: (parent: Tree, key: string | number) => void;
}

/** One to three changes at any place beneath the roots; the name is kept unless a change is about it. */
export function mutantOf(sample: JsonObject, draw: Draw, roots: readonly string[] = ['spec', 'metadata', '']): Mutant {
  const object: Tree = structuredClone(sample);
  const changes: string[] = [];
  const wanted = oneOf(draw, [1, 1, 1, 2, 3]);
  for (let at = 0; at < wanted; at += 1) changes.push(changeOnce(object, draw, roots));
  return { changes, text: written(object) };
}

/** JSON text in which the names of an object may come twice. */
export function written(value: Node): string {
  if (isRaw(value)) return value.raw;
  if (Array.isArray(value)) return `[${value.map(written).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name.replace(TWICE, ''))}:${written(member)}`)
    .join(',')}}`;
}

/** Marks a name that stands twice. */
const TWICE = '\u0001twice';

function changeOnce(object: Tree, draw: Draw, roots: readonly string[]): string {
  const root = oneOf(draw, roots);
  // Which version is there is between the server and its clients; nobody types it.
  const all = placesOf(object).filter((path) => path.length > 0 && path.at(-1) !== 'resourceVersion');
  const beneath = all.filter((path) => root === '' || path[0] === root);
  const path = oneOf(draw, beneath.length > 0 ? beneath : all);
  const parent = path.slice(0, -1).reduce<Tree>((at, key) => at[key] as Tree, object);
  const key = path.at(-1) ?? '';
  const { what, apply } = changeOf(parent[key] ?? null, draw);
  apply(parent, key);
  return `${path.join('.')}: ${what}`;
}

function changeOf(value: Node, draw: Draw): Change {
  const general = [replaced, removed, renamed, twice];
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
  return { what: `replaced by ${brief(value)}`, apply: (parent, key) => void (parent[key] = value) };
}

function removed(): Change {
  return {
    what: 'removed',
    apply: (parent, key) => (Array.isArray(parent) ? void parent.splice(Number(key), 1) : void delete parent[key]),
  };
}

function renamed(draw: Draw): Change {
  const name = hostileName(draw);
  return {
    what: `renamed ${name}`,
    apply: (parent, key) => {
      const value = parent[key] ?? null;
      delete parent[key];
      put(parent, name, value);
    },
  };
}

/** The same name a second time, with another value. */
function twice(draw: Draw): Change {
  const value = hostileValue(draw);
  return {
    what: `twice, then ${brief(value)}`,
    apply: (parent, key) => (Array.isArray(parent) ? void parent.push(value) : put(parent, `${key}${TWICE}`, value)),
  };
}

function added(draw: Draw): Change {
  const name = hostileName(draw);
  const value = hostileValue(draw);
  return {
    what: `member ${name} added: ${brief(value)}`,
    apply: (parent, key) => put(parent[key] as Tree, name, value),
  };
}

function otherText(draw: Draw): Change {
  const text = hostileText(draw);
  return { what: `text ${brief(text)}`, apply: (parent, key) => void (parent[key] = text) };
}

function lengthened(draw: Draw, text: string): Change {
  const end = hostileText(draw);
  return {
    what: `followed by ${brief(end)}`,
    apply: (parent, key) => void (parent[key] = `${text}${end}`),
  };
}

/** What may not stand twice in a list stands there often. */
function repeated(draw: Draw): Change {
  const times = oneOf(draw, [1, 2, 150]);
  return {
    what: `entries repeated ${times} times`,
    apply: (parent, key) => {
      const entries = parent[key] as Node[];
      parent[key] = Array.from({ length: times + 1 }, () => structuredClone(entries)).flat() as Json;
    },
  };
}

function appended(draw: Draw): Change {
  const value = hostileValue(draw);
  return { what: `entry added: ${brief(value)}`, apply: (parent, key) => void (parent[key] as Node[]).push(value) };
}

/** As a member of its own, whatever the name means elsewhere. */
function put(target: Tree, name: string, value: Node): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function placesOf(value: Node, path: Path = []): Path[] {
  if (isRaw(value)) return [path];
  const entries: [string | number, Json][] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : isJsonObject(value)
      ? Object.entries(value)
      : [];
  return [path, ...entries.flatMap(([key, child]) => placesOf(child, [...path, key]))];
}

function isRaw(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === 'raw';
}

function brief(value: Node): string {
  const text = isRaw(value) ? value.raw : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text;
}
