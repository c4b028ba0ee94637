import type { FieldPath } from '../../../api/findings.ts';
import { type Json, type JsonObject, member } from '../../../lib/json.ts';
import type { ImportLog } from '../keys/import-log.ts';

export function valueAt(source: JsonObject, path: FieldPath): Json | undefined {
  return path.reduce<Json | undefined>(
    (value, key) => (Array.isArray(value) ? value[Number(key)] : member(value, String(key))),
    source,
  );
}

/** The text at the path. Another type is logged as invalid, and counts as absent. */
export function textAt(source: JsonObject, path: FieldPath, log: ImportLog): string | undefined {
  const value = valueAt(source, path);
  if (value === undefined || typeof value === 'string') return value;
  log.invalid(path, value, 'a text');
  return undefined;
}

export function booleanAt(source: JsonObject, path: FieldPath, log: ImportLog): boolean | undefined {
  const value = valueAt(source, path);
  if (value === undefined || typeof value === 'boolean') return value;
  log.invalid(path, value, 'true or false');
  return undefined;
}

export function integerAt(source: JsonObject, path: FieldPath, log: ImportLog): number | undefined {
  const value = valueAt(source, path);
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0)) return value as number | undefined;
  log.invalid(path, value, 'a whole number of 0 or more');
  return undefined;
}

export function numberAt(source: JsonObject, path: FieldPath, log: ImportLog): number | undefined {
  const value = valueAt(source, path);
  if (value === undefined || (typeof value === 'number' && value >= 0)) return value;
  log.invalid(path, value, 'a number of 0 or more');
  return undefined;
}

export interface TextItem {
  readonly path: FieldPath;
  readonly text: string;
}

/** The texts of a list. A member of another type is logged as invalid. An empty list has a result of its caller. */
export function textsAt(source: JsonObject, path: FieldPath, log: ImportLog): TextItem[] {
  const value = valueAt(source, path);
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    log.invalid(path, value, 'a list');
    return [];
  }
  return value.flatMap((item, index): TextItem[] => {
    if (typeof item === 'string') return [{ path: [...path, index], text: item }];
    log.invalid([...path, index], item, 'a text');
    return [];
  });
}

export function isEmptyList(source: JsonObject, path: FieldPath): boolean {
  const value = valueAt(source, path);
  return Array.isArray(value) && value.length === 0;
}
