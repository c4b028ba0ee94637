/** structuredClone. The text of these functions runs in the guest; see web-globals.ts. */

type TypedArray = Uint8Array<ArrayBuffer>;

function dataCloneError(message: string): Error {
  const error = new Error(message);
  error.name = 'DataCloneError';
  return error;
}

/** A clone without its members, for a value that is no plain object; undefined for a plain object. */
function cloneBuiltIn(value: object, clone: (inner: unknown) => unknown): object | undefined {
  if (Array.isArray(value)) return Array.from({ length: 0 });
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof RegExp) return new RegExp(value.source, value.flags);
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set();
  if (isBoxed(value)) return Object(value.valueOf()) as object;
  if (value instanceof ArrayBuffer) return value.slice(0);
  if (ArrayBuffer.isView(value)) {
    const view = value as TypedArray;
    const Kind = viewKind(view);
    const length = view instanceof DataView ? view.byteLength : view.length;
    return new Kind(clone(view.buffer) as ArrayBuffer, view.byteOffset, length);
  }
  return undefined;
}

function isBoxed(value: object): boolean {
  return ['[object Boolean]', '[object Number]', '[object String]', '[object BigInt]'].includes(
    Object.prototype.toString.call(value),
  );
}

function viewKind(view: object): new (buffer: ArrayBuffer, offset: number, length: number) => object {
  const kinds = [DataView, Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array];
  const others = [Float32Array, Float64Array, BigInt64Array, BigUint64Array, Float16Array];
  return [...kinds, ...others].find((Kind) => view instanceof Kind) as never;
}

function cloneError(value: Error, clone: (inner: unknown) => unknown): Error {
  const kinds = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];
  const Kind = kinds.find((known) => known.name === value.name) ?? Error;
  const copy = new Kind(value.message);
  const hidden = { writable: true, enumerable: false, configurable: true };
  Object.defineProperty(copy, 'stack', { ...hidden, value: value.stack });
  if (Object.hasOwn(value, 'cause')) Object.defineProperty(copy, 'cause', { ...hidden, value: clone(value.cause) });
  return copy;
}

function requireCloneable(value: unknown): void {
  if (typeof value === 'function' || typeof value === 'symbol') {
    throw dataCloneError(`${typeof value === 'symbol' ? 'a symbol' : 'a function'} could not be cloned`);
  }
  if (typeof value !== 'object' || value === null) return;
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  const refused = ['Promise', 'WeakMap', 'WeakSet', 'Generator', 'AsyncGenerator', 'Symbol', 'URL', 'URLSearchParams'];
  if (refused.includes(tag) || /^(?:Temporal|Intl)\.|Iterator$/.test(tag)) {
    throw dataCloneError(`a value of the kind ${tag} could not be cloned`);
  }
}

function cloneMembers(value: object, copy: object, clone: (inner: unknown) => unknown): void {
  if (value instanceof Map) {
    for (const [key, member] of value) (copy as Map<unknown, unknown>).set(clone(key), clone(member));
  } else if (value instanceof Set) {
    for (const member of value) (copy as Set<unknown>).add(clone(member));
  } else if (Array.isArray(value)) (copy as unknown[]).length = value.length;
  const hasOwnMembers = Array.isArray(value) || Object.prototype.toString.call(copy) === '[object Object]';
  if (!hasOwnMembers) return;
  for (const key of Object.keys(value)) {
    const member: unknown = clone((value as Record<string, unknown>)[key]);
    Object.defineProperty(copy, key, { value: member, writable: true, enumerable: true, configurable: true });
  }
}

export function cloneValue(original: unknown, options?: { transfer?: readonly unknown[] }): unknown {
  if ((options?.transfer?.length ?? 0) > 0) throw dataCloneError('structuredClone in a tool transfers nothing');
  const copies = new Map<unknown, unknown>();
  const clone = (value: unknown): unknown => {
    requireCloneable(value);
    if (typeof value !== 'object' || value === null) return value;
    if (copies.has(value)) return copies.get(value);
    const copy = value instanceof Error ? cloneError(value, clone) : (cloneBuiltIn(value, clone) ?? {});
    copies.set(value, copy);
    if (!(value instanceof Error)) cloneMembers(value, copy, clone);
    return copy;
  };
  return clone(original);
}

export function exportClone(): Record<string, unknown> {
  return {
    structuredClone: (value: unknown, options?: { transfer?: readonly unknown[] }) => cloneValue(value, options),
  };
}

/** Everything of this module, for the guest. */
export const CLONE_PARTS = [
  dataCloneError,
  cloneBuiltIn,
  isBoxed,
  viewKind,
  cloneError,
  requireCloneable,
  cloneMembers,
  cloneValue,
  exportClone,
];
