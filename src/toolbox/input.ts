import { TemperError } from '../lib/errors.ts';
import { type Json, member } from '../lib/json.ts';

/** Reads members of an input that its schema has already validated. */
export function requiredText(input: Json, key: string): string {
  const value = member(input, key);
  if (typeof value !== 'string') throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${key}" must be a text`);
  return value;
}

/** An empty text counts as absent. */
export function optionalText(input: Json, key: string): string | undefined {
  const value = member(input, key);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function optionalNumber(input: Json, key: string): number | undefined {
  const value = member(input, key);
  return typeof value === 'number' ? value : undefined;
}
