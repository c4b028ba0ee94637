import type { Json } from '../../../src/lib/json.ts';

/** Returns an integer from 0 up to, but not including, the bound. */
export type Draw = (below: number) => number;

/** A generator that returns the same numbers for the same seed. */
export function seededDraw(seed: number): Draw {
  let state = seed >>> 0;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export function oneOf<T>(draw: Draw, values: readonly T[]): T {
  return values[draw(values.length)] as T;
}

/** JSON text that JSON.stringify cannot produce, such as `1e400`. */
export interface Raw {
  readonly raw: string;
}

const NUMBERS: readonly string[] = [
  '0',
  '-0',
  '-1',
  '1',
  '0.5',
  '2147483648',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775809',
  '1e15',
  '1e308',
  '1e400',
  '1E-400',
];

const QUANTITIES: readonly string[] = [
  '0',
  '0m',
  '1m',
  '0.001',
  '-1',
  '128m',
  '1e3',
  '1Ki',
  '0.5Gi',
  '1.001Gi',
  '1.0000001Gi',
  ' 1Gi',
  '1gi',
  '1E',
  '999999',
  '8388608Ti',
  '999999999999Ti',
  '999999999999.999Ti',
];
const DURATIONS: readonly string[] = [
  '0s',
  '1ms',
  '1ns',
  '-1s',
  '1h-1m',
  '24855h',
  '9999999999h',
  '9'.repeat(31),
  '1y',
];
const DECIMALS: readonly string[] = ['0', '-0.01', '1e2', '999999999.999999', '0.0000001', 'NaN', '2,00'];

const NAMES: readonly string[] = [
  '',
  '.',
  '..',
  'A',
  'a.b',
  'a_b',
  '-a',
  'a'.repeat(63),
  'a'.repeat(64),
  'a'.repeat(254),
  'a/b',
  'a%2fb',
  'ä',
  'temper-agent',
  'temper-deny-all',
  'standard',
  'no-such-thing',
  'elevated',
  'default/default',
];
const PATTERNS: readonly string[] = [
  '*',
  '**',
  'a*b*c*d*e*f*',
  '[a-',
  '(((((',
  '*'.repeat(256),
  '!x',
  'self.**',
  '{a,b}',
  '\\',
];
const TEXTS: readonly string[] = [
  '\u0000',
  '\u001b[31mred\u001b[0m',
  'a\r\nb\tc',
  '\u202egnp.exe',
  '\ufeff',
  '\ud800',
  'e\u0301'.repeat(30),
  '👩‍👩‍👧‍👦'.repeat(8),
  '\u2028',
  '${jndi:ldap://x}',
  "'; DROP TABLE agents; --",
  '$(reboot)',
  '{{ .Values }}',
  '<script>',
  '---\nkind: Pod',
];

/** Text of an unusual length: empty, short, or longer than any field accepts. */
function text(draw: Draw): string {
  const length = oneOf(draw, [0, 1, 257, 1_025, 70_000, 400_000]);
  return oneOf(draw, ['x', 'é', '\u0007', ' ']).repeat(length);
}

export function hostileText(draw: Draw): string {
  const kinds = [QUANTITIES, DURATIONS, DECIMALS, NAMES, PATTERNS, TEXTS];
  return draw(7) === 0 ? text(draw) : oneOf(draw, oneOf(draw, kinds));
}

/** Member names that are special in JavaScript, and names that no schema has. */
export function hostileName(draw: Draw): string {
  return oneOf(draw, [
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    '',
    'unheardOf',
    'a.b',
    'a[0]',
    '\u0000',
    'x'.repeat(300),
  ]);
}

/** A value of any type. */
export function hostileValue(draw: Draw): Json | Raw {
  switch (draw(10)) {
    case 0:
      return null;
    case 1:
      return draw(2) === 0;
    case 2:
    case 3:
      return { raw: oneOf(draw, NUMBERS) };
    case 4:
      return [];
    case 5:
      return Array.from({ length: oneOf(draw, [1, 2, 101, 1_000]) }, () => 'a');
    case 6:
      return { raw: `{${JSON.stringify(hostileName(draw))}:{"polluted":true}}` };
    case 7:
      return { raw: nested(oneOf(draw, [20, 400, 3_000])) };
    default:
      return hostileText(draw);
  }
}

function nested(depth: number): string {
  return `${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`;
}
