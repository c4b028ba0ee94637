import { isJsonObject, type Json } from '../lib/json.ts';

/** Numbers this close are the same; rounding differs between ways to compute one result. */
const RELATIVE_TOLERANCE = 1e-9;

/** Deep equality of JSON values, exact. Key order is nothing, item order is something. */
export function sameJson(first: Json, second: Json): boolean {
  return firstDifference(first, second, 0) === undefined;
}

/**
 * Where an output differs from what was expected, as a path (`rows[2].total`, empty for the whole); undefined when it does not.
 * Numbers may differ by 1e-9 of the larger.
 */
export function differenceFrom(expected: Json, got: Json): string | undefined {
  return firstDifference(expected, got, RELATIVE_TOLERANCE);
}

function firstDifference(expected: Json | undefined, got: Json | undefined, tolerance: number): string | undefined {
  const left: [expected: Json | undefined, got: Json | undefined, path: string][] = [[expected, got, '']];
  for (let entry = left.pop(); entry !== undefined; entry = left.pop()) {
    const [first, second, path] = entry;
    if (Array.isArray(first) && Array.isArray(second)) {
      if (first.length !== second.length) return path === '' ? 'length' : `${path}.length`;
      for (let index = first.length - 1; index >= 0; index -= 1) {
        left.push([first[index], second[index], `${path}[${index}]`]);
      }
    } else if (isJsonObject(first) && isJsonObject(second)) {
      const keys = new Set([...Object.keys(first), ...Object.keys(second)]);
      for (const key of [...keys].toReversed()) {
        left.push([own(first, key), own(second, key), path === '' ? key : `${path}.${key}`]);
      }
    } else if (!sameScalar(first, second, tolerance)) return path;
  }
  return undefined;
}

function own(value: { [key: string]: Json }, key: string): Json | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function sameScalar(first: Json | undefined, second: Json | undefined, tolerance: number): boolean {
  if (first === second) return true;
  if (typeof first !== 'number' || typeof second !== 'number') return false;
  return Math.abs(first - second) <= tolerance * Math.max(Math.abs(first), Math.abs(second));
}
