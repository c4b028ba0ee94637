import { TemperError } from '../lib/errors.ts';
import type { Json, JsonObject } from '../lib/json.ts';

/** Reads the members of a configuration file. All throw TEMPER_MANIFEST_INVALID with the name of the file and of the field. */

export function requiredText(file: string, field: string, value: Json | undefined): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalidMember(file, field, 'must be a non-empty string');
}

export function assertKnownMembers(file: string, prefix: string, value: JsonObject, known: readonly string[]): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw invalidMember(file, `${prefix}${unknown}`, `is not known here; known are ${known.join(', ')}`);
}

export function invalidMember(file: string, field: string, rule: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `${file}: ${field} ${rule}`);
}
