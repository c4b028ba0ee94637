import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { ToolResult } from '../contract.ts';

/** Short summary of a result for the transcript and the trace; bounded and printable. */
export function resultSummary(result: ToolResult): string {
  return result.ok ? outputSummary(result.output) : printable(result.error.message, 200);
}

function outputSummary(output: Json): string {
  return printable(typeof output === 'string' ? output : JSON.stringify(output), 160);
}
