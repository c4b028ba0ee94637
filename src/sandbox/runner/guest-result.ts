/**
 * Writes the result of a tool as JSON text and refuses every value that JSON would lose or change, because a lost value is
 * a wrong result. The text of these functions runs in the guest; see guest.ts for the rules that they must follow.
 */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */
import type { Primordials } from './guest-language.ts';

/** Returns what an object is and what to return instead, when JSON would lose a part of it. */
export function buildObjectCheck(own: Primordials): (value: object) => string | undefined {
  const { getOwnPropertySymbols, prototype: root } = Object;
  const parentOf = Object.getPrototypeOf as (value: object) => object | null;
  const { toString: tagOf } = Object.prototype;
  const { toString: sourceOf } = Function.prototype;
  const { slice, startsWith } = String.prototype;
  const test = RegExp.prototype.test as (...args: never[]) => unknown;
  const privateMember = /#[\w$]/;
  const keptTags = '|Object|Array|Boolean|Number|String|';
  const advice = own.parse(
    `{"Error":"return its message","Map":"return Object.fromEntries(value)","Promise":"await it first",
      "RegExp":"return its source","AsyncGenerator":"collect its values in a list first",
      "ArrayBuffer":"return Array.from(new Uint8Array(value))","Object":"return a plain object",
      "BigInt":"return Number(value) or String(value)","Symbol":"return a text"}`,
  ) as Record<string, string>;
  const lists = '|Set|Generator|Arguments|';
  const isList = (tag: string): boolean =>
    own.includes(lists, `|${tag}|`) || own.includes(tag, 'Iterator') || own.includes(tag, 'Array');
  const describeTag = (tag: string): string => {
    const article = own.includes('AEIO', own.slice(tag, 1)) ? 'an' : 'a';
    return `${article} ${tag}; ${advice[tag] ?? (isList(tag) ? 'return Array.from(value)' : advice['Object'])}`;
  };
  const classLoss = (value: object): string | undefined => {
    for (let level = parentOf(value); level !== null && level !== root; level = parentOf(level)) {
      const kind = (level as { constructor?: unknown }).constructor;
      const source = typeof kind === 'function' ? (own.apply(sourceOf, kind, []) as string) : '';
      if (own.apply(startsWith, source, ['class']) === true && own.apply(test, privateMember, [source]) === true) {
        return 'an instance of a class with private members; return a plain object, or define toJSON()';
      }
    }
    return undefined;
  };
  return (value) => {
    const tag = own.apply(slice, own.apply(tagOf, value, []), [8, -1]) as string;
    if (!own.includes(keptTags, `|${tag}|`)) return describeTag(tag);
    if (getOwnPropertySymbols(value).length > 0) {
      return 'an object with a symbol as the name of a member; use a text as the name';
    }
    return tag === 'Object' ? classLoss(value) : undefined;
  };
}

/** Returns what a value is and what to return instead, when JSON would lose or change it. */
export function buildLossCheck(own: Primordials): (value: unknown) => string | undefined {
  const objectLoss = buildObjectCheck(own);
  return (value) => {
    switch (typeof value) {
      case 'number': {
        const isFinite = value === value && value !== Infinity && value !== -Infinity;
        return isFinite ? undefined : `${own.text(value)}; return null where there is no number`;
      }
      case 'bigint':
        return 'a BigInt; return Number(value) or String(value)';
      case 'symbol':
        return 'a symbol; return a text';
      case 'function':
        return 'a function; return what it computes';
      case 'undefined':
        return 'undefined; return null for nothing';
      default:
        return typeof value === 'object' && value !== null ? objectLoss(value) : undefined;
    }
  };
}

interface ValueReader {
  isInvalidDate(value: unknown): boolean;
  /** Applies `toJSON` as JSON does. */
  convert(value: unknown): unknown;
  /** The path from an object to its member. */
  pathOf(key: string): string;
}

export function buildValueReader(own: Primordials): ValueReader {
  const RealDate = Date;
  const { getTime } = Date.prototype;
  const test = RegExp.prototype.test as (...args: never[]) => unknown;
  const plainName = /^[A-Za-z_$][\w$]{0,63}$/;
  return {
    isInvalidDate(value) {
      if (!(value instanceof RealDate)) return false;
      const time = own.apply(getTime, value, []);
      return time !== time;
    },
    convert(value) {
      if (value === null || (typeof value !== 'object' && typeof value !== 'bigint')) return value;
      const { toJSON } = value as { toJSON?: unknown };
      return typeof toJSON === 'function' ? own.apply(toJSON as () => unknown, value, ['']) : value;
    },
    pathOf: (key) =>
      own.apply(test, plainName, [key]) === true ? `.${key}` : `[${own.stringify(own.slice(key, 64))}]`,
  };
}

/** Returns the JSON text of a result. Throws a TypeError that names the path of the first refused value, from `subject` on. */
export function buildEncoder(own: Primordials): (value: unknown, subject?: string) => string {
  /** The containers around a value, innermost first. */
  interface Ancestors {
    value: unknown;
    outer: Ancestors | undefined;
    depth: number;
  }
  /** The path of a refused value, below the value that was checked. */
  interface Loss {
    path: string;
    what: string;
  }
  const lossOf = buildLossCheck(own);
  const { isInvalidDate, convert, pathOf } = buildValueReader(own);
  const { isArray } = Array;
  const maxDepth = 256;
  const isInside = (value: unknown, ancestors: Ancestors | undefined): boolean => {
    for (let level = ancestors; level !== undefined; level = level.outer) if (level.value === value) return true;
    return false;
  };
  const search = (original: unknown, outer: Ancestors | undefined): Loss | undefined => {
    if (isInvalidDate(original)) return { path: '', what: 'an invalid Date; return null' };
    const value = convert(original);
    const what = lossOf(value);
    if (what !== undefined) return { path: '', what };
    if (typeof value !== 'object' || value === null) return undefined;
    const depth = (outer?.depth ?? 0) + 1;
    // The supervisor refuses a result that is nested too deeply.
    if (depth > maxDepth) return undefined;
    if (isInside(value, outer)) return { path: '', what: 'an object that contains itself; return each value once' };
    return isArray(value)
      ? searchItems(value, { value, outer, depth })
      : searchMembers(value as Record<string, unknown>, { value, outer, depth });
  };
  const searchItems = (items: readonly unknown[], ancestors: Ancestors): Loss | undefined => {
    for (let index = 0; index < items.length; index += 1) {
      const loss = search(items[index], ancestors);
      if (loss !== undefined) return { path: `[${index}]${loss.path}`, what: loss.what };
    }
    return undefined;
  };
  const searchMembers = (value: Record<string, unknown>, ancestors: Ancestors): Loss | undefined => {
    const names = own.keys(value);
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index] as string;
      const member = value[name];
      const loss = member === undefined ? undefined : search(member, ancestors);
      if (loss !== undefined) return { path: `${pathOf(name)}${loss.path}`, what: loss.what };
    }
    return undefined;
  };
  return (value, subject = 'result') => {
    const loss = search(value, undefined);
    if (loss !== undefined) throw new TypeError(`${subject}${own.slice(loss.path, 400)} is ${loss.what}`);
    return own.stringify(value) as string;
  };
}
