import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';

/** Readers for members of the gateway's responses. Each throws TEMPER_GATEWAY_BAD_RESPONSE for a missing or wrong member. */

export function requireObject(value: Json | undefined, path: string): JsonObject {
  if (!isJsonObject(value)) throw malformedResponse(path);
  return value;
}

export function requireList(value: Json | undefined, path: string): Json[] {
  if (!Array.isArray(value)) throw malformedResponse(path);
  return value;
}

export function requireText(value: JsonObject, key: string, path: string): string {
  const found = value[key];
  if (typeof found !== 'string') throw malformedResponse(`${path}.${key}`);
  return found;
}

export function requireNumber(value: JsonObject, key: string, path: string): number {
  const found = value[key];
  if (typeof found !== 'number') throw malformedResponse(`${path}.${key}`);
  return found;
}

export function malformedResponse(path: string): TemperError {
  return new TemperError('TEMPER_GATEWAY_BAD_RESPONSE', `the gateway's response has no valid "${path}"`);
}
