/** A program that runs several versions of a tool many times in one isolate. A tool runs in a fresh one in every use. */
export interface ProbeProgram {
  /** The versions, each the source of a whole tool. */
  variants: readonly string[];
  /** Counts the work of calls; the variants are instrumented. */
  countsWork?: boolean;
  /** Lets a call run at another time. */
  shiftsClock?: boolean;
  /** Characters of an output that are returned; of a longer one also its length and a hash. */
  maxText?: number;
}

/** One call: the variant, the number of the input, whether the calls before have used the same instance, the shift of the clock. */
export type ProbeCall = readonly [variant: number, input: number, shared: 0 | 1, shiftMs?: number];

/** Work after which a counted call ends. */
export const MAX_WORK = 2_000_000;

const MAX_TEXT = 2_000;

/** Stands for the counter in the source of instrumented variants. */
export const WORK = 'temperProbeWork';
export const SPREAD = 'temperProbeSpread';

/**
 * The source of the program as a tool of its own. Each variant is in a function scope of its own, in which neither the entry of the
 * program nor another variant is visible under the names that a tool may define.
 */
export function probeSource(program: ProbeProgram): string {
  const { variants, countsWork = false, shiftsClock = false, maxText = MAX_TEXT } = program;
  return [
    'const temperProbe = (() => {',
    '"use strict";',
    'const { parse, stringify } = JSON;',
    'const { apply } = Reflect;',
    `const maxText = ${maxText};`,
    countsWork ? WORK_COUNTERS : '',
    shiftsClock ? SHIFTED_CLOCK : 'const setShift = () => {};',
    countsWork ? 'const setWork = temperProbeReset;' : 'const setWork = () => {};',
    countsWork ? 'const getWork = temperProbeCount;' : 'const getWork = () => 0;',
    RUN_CALLS,
    'return runCalls;',
    '})();',
    `const temperProbeVariants = [\n${variants.map(variantFactory).join(',\n')}\n];`,
    'async function execute(input) { return temperProbe(temperProbeVariants, input); }',
  ].join('\n');
}

/** A tool is a sloppy-mode script, so no directive stands around a variant. */
function variantFactory(source: string): string {
  return `function (execute, run, temperProbe, temperProbeVariants) { return (function () {${source}\n;return typeof execute === 'function' ? execute : run; }).call(globalThis); }`;
}

/** Runs the calls in their order, and returns the JSON text of each output, or the kind of failure. */
const RUN_CALLS = `
const textOf = (value) => {
  const text = stringify(value);
  if (typeof text !== 'string') return 'undefined';
  if (text.length <= maxText) return text;
  let hash = 0;
  for (let index = 0; index < text.length; index += 1) hash = (hash * 31 + text.charCodeAt(index)) | 0;
  return text.slice(0, maxText) + ' … ' + text.length + ' ' + hash;
};
const runCalls = async (factories, { inputs, calls }) => {
  const shared = [];
  const results = [];
  for (let number = 0; number < calls.length; number += 1) {
    const [variant, index, isShared, shift] = calls[number];
    const result = { text: '', failed: false, mutated: false, work: 0 };
    results[number] = result;
    setShift(shift || 0);
    try {
      let entry = isShared === 1 ? shared[variant] : undefined;
      if (entry === undefined) entry = factories[variant]();
      if (isShared === 1) shared[variant] = entry;
      const text = stringify(inputs[index]);
      const input = parse(text);
      setWork();
      const output = await apply(entry, undefined, [input]);
      result.work = getWork();
      result.text = textOf(output);
      result.mutated = stringify(input) !== text;
    } catch (error) {
      result.work = getWork();
      result.failed = true;
      result.text = 'failed';
    }
  }
  return { results };
};
`;

const SHIFTED_CLOCK = `
let shiftMs = 0;
const setShift = (value) => { shiftMs = value; };
const RealDate = Date;
const realNow = Date.now;
const shiftedNow = () => apply(realNow, RealDate, []) + shiftMs;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, parts, as) => Reflect.construct(target, parts.length === 0 ? [shiftedNow()] : parts, as),
  apply: () => new RealDate(shiftedNow()).toString(),
  get: (target, key) => key === 'now' ? shiftedNow : Reflect.get(target, key),
});
`;

/** Counts what loops, functions and spreads report, and the length of what linear built-ins read. */
const WORK_COUNTERS = `
let count = 0;
globalThis.temperProbeWork = () => { count += 1; if (count > ${MAX_WORK}) throw new RangeError('work limit'); };
const add = (length) => { if (typeof length === 'number' && length > 0) count += length; if (count > ${MAX_WORK}) throw new RangeError('work limit'); };
globalThis.temperProbeSpread = (value) => {
  if (value !== null && value !== undefined) add(typeof value.length === 'number' ? value.length : typeof value.size === 'number' ? value.size : Object.keys(value).length);
  return value;
};
const temperProbeReset = () => { count = 0; };
const temperProbeCount = () => count;
const patch = (prototype, names) => {
  for (const name of names) {
    const real = prototype[name];
    if (typeof real !== 'function') continue;
    prototype[name] = function (...parts) { add(this === null || this === undefined ? 0 : this.length); return apply(real, this, parts); };
  }
};
patch(Array.prototype, ['includes', 'indexOf', 'lastIndexOf', 'slice', 'concat', 'splice', 'shift', 'unshift', 'join', 'reverse', 'fill', 'copyWithin', 'flat', 'sort', 'toSorted', 'toReversed', 'toSpliced', 'with']);
patch(String.prototype, ['includes', 'indexOf', 'lastIndexOf', 'split', 'replace', 'replaceAll', 'match', 'matchAll', 'toUpperCase', 'toLowerCase', 'trim']);
for (const name of ['keys', 'values', 'entries', 'assign', 'fromEntries']) {
  const real = Object[name];
  Object[name] = (...parts) => { const value = apply(real, Object, parts); add(Array.isArray(value) ? value.length : 1); return value; };
}
const realFrom = Array.from;
Array.from = function (...parts) { const value = apply(realFrom, this, parts); add(value.length); return value; };
`;
