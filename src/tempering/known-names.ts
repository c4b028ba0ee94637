/** Names that are the language's or the host's, not the author's: shown as they are, since they are what a judge looks for. */

const CONTAINERS: readonly object[] = [
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
const SCALARS: readonly object[] = [String, Number, Boolean, Symbol, BigInt, Date, RegExp, Error, AggregateError];
const OTHERS: readonly object[] = [
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

export const KNOWN_GLOBALS: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Za-z]+[0-9]*(Array|Error)?$/.test(name)),
  ...HOST_GLOBALS.split(' '),
]);

export const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...[CONTAINERS, SCALARS, OTHERS].flat().flatMap((builtIn) => membersOf(builtIn)),
  ...HOST_MEMBERS.split(' '),
]);

function membersOf(builtIn: object): string[] {
  const prototype: unknown = Reflect.get(builtIn, 'prototype');
  const inherited = typeof prototype === 'object' && prototype !== null ? Object.getOwnPropertyNames(prototype) : [];
  return [...Object.getOwnPropertyNames(builtIn), ...inherited];
}
