/**
 * Prepares the language for guest code: removes globals that the engine offers. The text of these functions runs in the
 * guest; see guest.ts for the rules that they must follow.
 */
/* oxlint-disable no-eval -- the guest loses its own eval here; only the bootstrap keeps it, for the source of the tool */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */

export interface Primordials {
  parse(text: string): unknown;
  stringify(value: unknown, replacer?: (key: string, value: unknown) => unknown): string | undefined;
  apply(target: (...args: never[]) => unknown, self: unknown, args: readonly unknown[]): unknown;
  construct(target: unknown, args: readonly unknown[], newTarget?: unknown): object;
  define(target: object, key: PropertyKey, descriptor: PropertyDescriptor): unknown;
  evaluate(text: string): unknown;
  text(value: unknown): string;
  slice(text: string, end: number): string;
  includes(text: string, part: string): boolean;
  keys(value: object): string[];
  global: Record<string, unknown>;
}

export function takePrimordials(): Primordials {
  const apply = Reflect.apply;
  const { slice, includes } = String.prototype;
  return {
    parse: JSON.parse,
    stringify: JSON.stringify as Primordials['stringify'],
    apply: apply as Primordials['apply'],
    construct: Reflect.construct as Primordials['construct'],
    define: Reflect.defineProperty,
    evaluate: globalThis.eval as Primordials['evaluate'],
    text: String,
    slice: (text, end) => apply(slice, text, [0, end]) as string,
    includes: (text, part) => apply(includes, text, [part]) as boolean,
    keys: Object.keys,
    global: globalThis as unknown as Record<string, unknown>,
  };
}

export function defineHidden(own: Primordials, target: object, key: PropertyKey, value: unknown): void {
  own.define(target, key, { value, writable: true, enumerable: false, configurable: true });
}

/** Removes memory that the engine does not count, shared memory, garbage-collection observers and code from strings. */
export function removeUnsafeGlobals(own: Primordials): void {
  const { global } = own;
  for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry']) {
    delete global[name];
  }
  const refuse = (name: string): (() => never) => {
    const refused = function () {
      throw new EvalError('code from text is not available here');
    } as unknown as () => never;
    defineHidden(own, refused, 'name', name);
    return refused;
  };
  defineHidden(own, global, 'eval', refuse('eval'));
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const [index, sample] of kinds.entries()) {
    const prototype = Object.getPrototypeOf(sample) as object;
    const constructor = refuse(
      ['Function', 'AsyncFunction', 'GeneratorFunction', 'AsyncGeneratorFunction'][index] ?? '',
    );
    own.define(constructor, 'prototype', { value: prototype, writable: false });
    own.define(prototype, 'constructor', { value: constructor, writable: false, configurable: false });
    if (index === 0) defineHidden(own, global, 'Function', constructor);
  }
  // A number that is written raw, such as 1e999, is not the number that another parser reads.
  delete (JSON as Partial<Record<'rawJSON' | 'isRawJSON', unknown>>).rawJSON;
  delete (JSON as Partial<Record<'rawJSON' | 'isRawJSON', unknown>>).isRawJSON;
  const log = (): void => {};
  const outputs = { log, info: log, warn: log, error: log, debug: log, trace: log, table: log, dir: log, dirxml: log };
  const groups = { group: log, groupCollapsed: log, groupEnd: log };
  const timers = { time: log, timeLog: log, timeEnd: log, count: log, countReset: log };
  defineHidden(own, global, 'console', { ...outputs, ...groups, ...timers, assert: log, clear: log });
}

/** Makes buffers fixed-size, because the engine does not charge resizable buffers to the heap limit. */
export function fixBufferSizes(own: Primordials): void {
  const Real = ArrayBuffer;
  const { construct } = own;
  const Fixed = function (this: unknown, length?: number) {
    if (new.target === undefined) throw new TypeError("Constructor ArrayBuffer requires 'new'");
    return construct(Real, [length], new.target);
  };
  defineHidden(own, Fixed, 'name', 'ArrayBuffer');
  defineHidden(own, Fixed, 'isView', Real.isView);
  own.define(Fixed, 'prototype', { value: Real.prototype, writable: false });
  defineHidden(own, Real.prototype, 'constructor', Fixed);
  delete (Real.prototype as unknown as Record<string, unknown>)['resize'];
  defineHidden(own, own.global, 'ArrayBuffer', Fixed);
}

/**
 * Makes functions give no source text. A tool that reads its own comments, names and line breaks would depend on what a
 * reviewer does not read.
 */
export function hideFunctionSource(own: Primordials): void {
  const real = Function.prototype.toString;
  const { toString } = {
    toString(this: unknown): string {
      // Throws for a value that is no function.
      own.apply(real, this, []);
      return 'function () { [native code] }';
    },
  };
  defineHidden(own, Function.prototype, 'toString', toString);
}
