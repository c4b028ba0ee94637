import type { ToolApi } from '../../api/v1alpha1/common.ts';

/** Names that no tool may use, with the reason. */
export const BANNED_NAMES: ReadonlyMap<string, string> = new Map([
  ['eval', 'code from text is banned'],
  ['Function', 'code from text is banned; write the function itself'],
  ['require', 'a tool cannot load modules; write what you need'],
  ['process', 'a tool has no process'],
  ['child_process', 'a tool cannot start programs'],
  ['module', 'a tool exports nothing; define function execute(input)'],
  ['exports', 'a tool exports nothing; define function execute(input)'],
  ['global', 'a tool has no host globals'],
  ['window', 'a tool has no host globals'],
  ['self', 'a tool has no host globals'],
  ['WebAssembly', 'a tool may use JavaScript only'],
  ['SharedArrayBuffer', 'a tool shares no memory'],
  ['Atomics', 'a tool shares no memory'],
  ['WeakRef', 'garbage collection may not be observed'],
  ['FinalizationRegistry', 'garbage collection may not be observed'],
  ['importScripts', 'a tool cannot load modules'],
  ['XMLHttpRequest', 'declare fetch and use that'],
  ['WebSocket', 'declare fetch and use that'],
]);

/** Advice for names that models expect and that do not exist in a tool. */
export const UNAVAILABLE_NAMES: ReadonlyMap<string, string> = new Map([
  ['setTimeout', 'there are no timers'],
  ['setInterval', 'there are no timers'],
  ['setImmediate', 'there are no timers'],
  ['queueMicrotask', 'use Promise.resolve().then(…)'],
  ['Buffer', 'use Uint8Array with TextEncoder and TextDecoder, or btoa and atob for base64'],
  ['input', 'it is the parameter of execute'],
]);

/** Global names of the language that exist inside a tool. */
export const LANGUAGE_NAMES: ReadonlySet<string> = new Set(
  `undefined NaN Infinity globalThis Object Array Boolean Number String Symbol BigInt Math JSON Date RegExp Map Set WeakMap
  WeakSet Promise Proxy Reflect Intl Iterator Temporal ArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array
  Uint16Array Int32Array Uint32Array BigInt64Array BigUint64Array Float16Array Float32Array Float64Array Error EvalError
  RangeError ReferenceError SyntaxError TypeError URIError AggregateError SuppressedError DisposableStack AsyncDisposableStack
  parseInt parseFloat isNaN isFinite encodeURI encodeURIComponent decodeURI decodeURIComponent escape unescape console
  performance arguments URL URLSearchParams TextEncoder TextDecoder btoa atob structuredClone`.split(/\s+/),
);

/** Global names of host functions. */
export const API_NAMES: ReadonlyMap<string, ToolApi> = new Map([
  ['fetch', 'fetch'],
  ['fs', 'fs.readFile'],
  ['crypto', 'crypto'],
]);

/** Members that lead from any value to its prototype or constructor. */
export const DANGEROUS_MEMBERS: ReadonlySet<string> = new Set([
  'constructor',
  '__proto__',
  'prototype',
  '__defineGetter__',
  '__defineSetter__',
  '__lookupGetter__',
  '__lookupSetter__',
  'prepareStackTrace',
]);
