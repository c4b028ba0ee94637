import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, member, type Json, type JsonObject } from '../../../lib/json.ts';

function badRequest(what: string): TemperError {
  return new TemperError('TEMPER_MODEL_FORMAT', `the request ${what}`);
}

export function requiredText(value: Json, name: string): string {
  const found = member(value, name);
  if (typeof found !== 'string') throw badRequest(`has no text "${name}"`);
  return found;
}

export function requiredObjects(value: Json, name: string): JsonObject[] {
  const found = member(value, name);
  if (!Array.isArray(found) || !found.every(isJsonObject)) throw badRequest(`has no list of objects "${name}"`);
  return found;
}

export function unknownRole(role: Json | undefined): TemperError {
  return badRequest(`has a message of the unknown role or type ${JSON.stringify(role ?? null)}`);
}
