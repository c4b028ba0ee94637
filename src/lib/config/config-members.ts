import { TemperError } from '../errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';

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

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** The entries of a list whose members have unique names of lower-case letters, digits and dashes. */
export function namedEntries(file: string, value: unknown, list: string): { field: string; entry: JsonObject }[] {
  if (!isJsonObject(value)) throw invalidMember(file, 'the value', `must be an object with ${list}`);
  assertKnownMembers(file, '', value, [list]);
  const entries = value[list];
  if (!Array.isArray(entries)) throw invalidMember(file, list, 'must be a list');
  const names = new Set<string>();
  return entries.map((entry, index) => {
    const field = `${list}[${index}]`;
    if (!isJsonObject(entry)) throw invalidMember(file, field, 'must be an object');
    const name = requiredText(file, `${field}.name`, entry['name']);
    if (!NAME.test(name)) throw invalidMember(file, `${field}.name`, 'must be lower-case letters, digits and dashes');
    if (names.has(name)) throw invalidMember(file, `${field}.name`, `is "${name}" a second time`);
    names.add(name);
    return { field, entry };
  });
}

export function textList(file: string, field: string, value: Json): string[] {
  if (!Array.isArray(value)) throw invalidMember(file, field, 'must be a list of texts');
  return value.map((item, index) => {
    if (typeof item !== 'string') throw invalidMember(file, `${field}[${index}]`, 'must be a text');
    return item;
  });
}
