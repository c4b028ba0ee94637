import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';

/** Checks for the parts of a script. Each returns every problem it finds, with its path. */

interface ShapeProblem {
  path: (string | number)[];
  /** The violated rule, as text that follows the path. */
  rule: string;
}

type ProblemPath = (string | number)[];
export type ShapeCheck = (value: Json, path: ProblemPath) => ShapeProblem[];

export const problem = (path: ProblemPath, rule: string): ShapeProblem[] => [{ path, rule }];

export const text: ShapeCheck = (value, path) => (typeof value === 'string' ? [] : problem(path, 'must be text'));
export const flag: ShapeCheck = (value, path) =>
  typeof value === 'boolean' ? [] : problem(path, 'must be true or false');
export const integerBetween =
  (from: number, to: number): ShapeCheck =>
  (value, path) =>
    Number.isInteger(value) && (value as number) >= from && (value as number) <= to
      ? []
      : problem(path, `must be a whole number from ${from} to ${to}`);
export const oneOf =
  (...allowed: string[]): ShapeCheck =>
  (value, path) =>
    typeof value === 'string' && allowed.includes(value) ? [] : problem(path, `must be one of ${allowed.join(', ')}`);
export const listOf =
  (item: ShapeCheck): ShapeCheck =>
  (value, path) =>
    Array.isArray(value)
      ? value.flatMap((member, index) => item(member, [...path, index]))
      : problem(path, 'must be a list');
export const shape =
  (members: Record<string, ShapeCheck>, required: readonly string[] = []): ShapeCheck =>
  (value, path) => {
    if (!isJsonObject(value)) return problem(path, 'must be an object');
    const missing = required.filter((name) => !Object.hasOwn(value, name));
    return [
      ...missing.flatMap((name) => problem([...path, name], 'is missing')),
      ...Object.keys(value).flatMap((name) => checkMember(members, value, name, path)),
    ];
  };

function checkMember(
  members: Record<string, ShapeCheck>,
  value: JsonObject,
  name: string,
  path: ProblemPath,
): ShapeProblem[] {
  const check = Object.hasOwn(members, name) ? members[name] : undefined;
  if (!check) return problem([...path, name], `is not known here; known are ${Object.keys(members).join(', ')}`);
  return check(value[name] ?? null, [...path, name]);
}
