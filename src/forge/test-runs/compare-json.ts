import { isJsonObject, type Json } from '../../lib/json.ts';

/** Numbers within this tolerance are equal: two ways to compute one result round differently. */
const RELATIVE_TOLERANCE = 1e-9;
/** What is left of a sum whose exact value is 0. No fraction of 0 is a tolerance, and only an expected 0 has this one. */
const ZERO_TOLERANCE = 1e-12;

/** Exact deep equality of JSON values. The order of keys does not matter, the order of items does. */
export function sameJson(first: Json, second: Json): boolean {
  return firstDifference(first, second, 0) === undefined;
}

/**
 * The path at which an output differs from the expected value (`rows[2].total`; empty for the whole value); undefined
 * when they are equal. Numbers may differ by 1e-9 of the larger one, and by less than 1e-12 from an
 * expected 0.
 */
export function differenceFrom(expected: Json, actual: Json): string | undefined {
  return firstDifference(expected, actual, RELATIVE_TOLERANCE);
}

function firstDifference(expected: Json | undefined, actual: Json | undefined, tolerance: number): string | undefined {
  const stack: [expected: Json | undefined, actual: Json | undefined, path: string][] = [[expected, actual, '']];
  for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
    const [first, second, path] = entry;
    if (Array.isArray(first) && Array.isArray(second)) {
      if (first.length !== second.length) return path === '' ? 'length' : `${path}.length`;
      for (let index = first.length - 1; index >= 0; index -= 1) {
        stack.push([first[index], second[index], `${path}[${index}]`]);
      }
    } else if (isJsonObject(first) && isJsonObject(second)) {
      const keys = new Set([...Object.keys(first), ...Object.keys(second)]);
      for (const key of [...keys].toReversed()) {
        stack.push([ownMember(first, key), ownMember(second, key), path === '' ? key : `${path}.${key}`]);
      }
    } else if (!sameScalar(first, second, tolerance)) return path;
  }
  return undefined;
}

function ownMember(value: { [key: string]: Json }, key: string): Json | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function sameScalar(first: Json | undefined, second: Json | undefined, tolerance: number): boolean {
  if (first === second) return true;
  if (typeof first !== 'number' || typeof second !== 'number') return false;
  if (!Number.isFinite(first) || !Number.isFinite(second)) return false;
  if (first === 0 && tolerance > 0) return Math.abs(second) < ZERO_TOLERANCE;
  return Math.abs(first - second) <= tolerance * Math.max(Math.abs(first), Math.abs(second));
}
