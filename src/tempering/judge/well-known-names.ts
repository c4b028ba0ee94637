import { plainWordsOf } from './plain-words.ts';

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

const BUILT_INS: readonly object[] = [CONTAINER_TYPES, SCALAR_TYPES, OTHER_BUILT_INS].flat();

/** Names that a value of any type can have, such as the methods of its prototype. */
const VALUE_MEMBERS: ReadonlySet<string> = new Set([
  ...BUILT_INS.flatMap((builtIn) => inheritedMembers(builtIn)),
  ...HOST_MEMBERS.split(' '),
  ...BUILT_IN_TOOLS.split(' '),
]);

export const WELL_KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...VALUE_MEMBERS,
  ...BUILT_INS.flatMap((builtIn) => Object.getOwnPropertyNames(builtIn)),
]);

/** Words of the language that data has in its own right: of errors, responses, requests, traps and iterators; or that a reviewer looks for. */
const DATA_WORDS: ReadonlySet<string> = new Set(
  (
    'apply body callee caller constructor digest env exec get global has json message method next ok prototype raw redirect ' +
    'redirected set spawn stack status text then url'
  ).split(' '),
);

/**
 * Whether a name belongs to the language even where no code uses it as such. Other words of the language (`every`, `test`, `is`) are
 * ordinary words there, from which an author could make a sentence.
 */
export function isWellKnownData(name: string): boolean {
  return WELL_KNOWN_MEMBERS.has(name) && !isLanguageWord(name);
}

/** Whether a value can have the member, in contrast to the members of a global object such as `Object.is`. */
export function isValueMember(name: string): boolean {
  return VALUE_MEMBERS.has(name);
}

/** A member of the language that is an ordinary word, and not one of the words that may stay in any place. */
export function isLanguageWord(name: string): boolean {
  return (
    WELL_KNOWN_MEMBERS.has(name) && /^[a-z]+$/.test(name) && !DATA_WORDS.has(name) && plainWordsOf(name) === undefined
  );
}

function inheritedMembers(builtIn: object): string[] {
  const prototype: unknown = Reflect.get(builtIn, 'prototype');
  const hasMembers = (typeof prototype === 'object' && prototype !== null) || typeof prototype === 'function';
  return hasMembers ? Object.getOwnPropertyNames(prototype) : [];
}
