/** JSON text that crosses the border to a runner. */
import { type Json, jsonDepth, parseUntrustedJson } from '../lib/json.ts';
import type { SandboxFailure } from './port.ts';
import { MAX_DEPTH } from './protocol.ts';

/** The JSON text of an input; undefined when it is nested too deeply. */
export function encodeInput(input: Json): string | undefined {
  try {
    const text = JSON.stringify(input);
    return text.length < MAX_DEPTH || jsonDepth(input, MAX_DEPTH + 1) <= MAX_DEPTH ? text : undefined;
  } catch {
    return undefined;
  }
}

/** The value that guest code wrote, or why it is refused. */
export function parseOutput(
  text: string,
  maxBytes: number,
): { value: Json } | { code: SandboxFailure; message: string } {
  if (Buffer.byteLength(text) > maxBytes) {
    return { code: 'TEMPER_SANDBOX_OUTPUT_TOO_LARGE', message: 'the result is larger than its limit' };
  }
  try {
    const value = parseUntrustedJson(text);
    if (text.length < MAX_DEPTH || jsonDepth(value, MAX_DEPTH + 1) <= MAX_DEPTH) return { value };
  } catch {
    // Not JSON, or nested too deeply to be parsed: the caller gets the same failure for both.
  }
  const message = `the result is not JSON, or nested deeper than ${MAX_DEPTH}`;
  return { code: 'TEMPER_SANDBOX_OUTPUT_INVALID', message };
}
