import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';

/** Members of the gateway's answers. What lacks one is no answer: TEMPER_GATEWAY_ANSWER. */

export function objectIn(value: Json | undefined, what: string): JsonObject {
  if (!isJsonObject(value)) throw malformed(what);
  return value;
}

export function listIn(value: Json | undefined, what: string): Json[] {
  if (!Array.isArray(value)) throw malformed(what);
  return value;
}

export function textIn(value: JsonObject, key: string, what: string): string {
  const found = value[key];
  if (typeof found !== 'string') throw malformed(`${what}.${key}`);
  return found;
}

export function numberIn(value: JsonObject, key: string, what: string): number {
  const found = value[key];
  if (typeof found !== 'number') throw malformed(`${what}.${key}`);
  return found;
}

export function malformed(what: string): TemperError {
  return new TemperError('TEMPER_GATEWAY_ANSWER', `the gateway's answer has no usable "${what}"`);
}
