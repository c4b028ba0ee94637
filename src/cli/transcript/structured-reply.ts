import { type Json, parseUntrustedJson } from '../../lib/json.ts';

/** A line of JSON output with the value that its reply is, so that a script needs no second parser. */
export function withValue<L extends { format?: 'json' }>(line: L, reply: string): L & { value?: Json } {
  if (line.format !== 'json') return line;
  try {
    return { ...line, value: parseUntrustedJson(reply) };
  } catch {
    return line;
  }
}
