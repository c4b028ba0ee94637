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
  'redirected text json url stack prepareStackTrace caller callee mainModule env exec spawn __proto__';

/** Texts with a meaning in the language, in HTTP and in the host functions. */
export const WELL_KNOWN_TEXTS: ReadonlySet<string> = new Set([
  'use strict',
  ...'string number boolean object function undefined bigint symbol true false'.split(' '),
  ...'GET POST PUT PATCH DELETE HEAD content-type application/json text/plain https://'.split(' '),
  ...'utf8 utf-8 base64 base64url latin1 md5 sha1 sha256 sha384 sha512 NFC NFD NFKC NFKD'.split(' '),
]);

/** The tools of Temper that a step of a composed tool can call; the author or another author chose every other name. */
const BUILT_IN_TOOLS =
  'file_read file_write file_edit file_delete file_list text_search shell_exec git_status git_diff git_log git_show git_branch git_commit code_run time_now generate_text memory_get memory_set memory_delete memory_list memory_search send_message ' +
  'discover_capabilities';

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
  ...BUILT_IN_TOOLS.split(' '),
]);

function membersOf(builtIn: object): string[] {
  const prototype: unknown = Reflect.get(builtIn, 'prototype');
  const inherited = typeof prototype === 'object' && prototype !== null ? Object.getOwnPropertyNames(prototype) : [];
  return [...Object.getOwnPropertyNames(builtIn), ...inherited];
}
