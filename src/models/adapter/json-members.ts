import { isJsonObject, member, type Json, type JsonObject } from '../../lib/json.ts';

/** Reads provider JSON, in which any member may be missing or of another type than documented. */

export function textAt(value: Json | undefined, key: string): string {
  const found = member(value, key);
  return typeof found === 'string' ? found : '';
}

export function objectAt(value: Json | undefined, key: string): JsonObject | undefined {
  const found = member(value, key);
  return isJsonObject(found) ? found : undefined;
}

export function arrayAt(value: Json | undefined, key: string): Json[] {
  const found = member(value, key);
  return Array.isArray(found) ? found : [];
}

/** A token count or an index: an integer of 0 or more; undefined for every other value. */
export function countAt(value: Json | undefined, key: string): number | undefined {
  const found = member(value, key);
  return typeof found === 'number' && Number.isSafeInteger(found) && found >= 0 ? found : undefined;
}
