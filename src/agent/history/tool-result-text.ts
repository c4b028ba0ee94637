import type { ToolResult } from '../../tools/contract.ts';

/** A tool result in the form for the model: the output as JSON text, or `{"error":{code,message,rule}}`. */
export function resultText(result: ToolResult, limit: number): string {
  if (!result.ok) return truncate(JSON.stringify({ error: result.error }), limit);
  const text = truncate(JSON.stringify(result.output), limit);
  return result.notice === undefined ? text : `${text}\n[LOOP GUARD] ${result.notice}`;
}

/** Truncates the text to `limit` characters and appends a marker with both sizes. */
export function truncate(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${head(text, limit)}\n[Output truncated: ${count(text.length)} → ${count(limit)} characters]`;
}

/** Truncates the text at the last line break before `limit` if it is in the second half of the kept text, otherwise at `limit`. */
export function truncateAtLine(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const start = head(text, limit);
  const newline = start.lastIndexOf('\n');
  const kept = newline >= limit / 2 ? start.slice(0, newline) : start;
  return `${kept}\n[Output truncated: ${count(text.length)} → ${count(kept.length)} characters]`;
}

/** The first `limit` UTF-16 units; never splits a surrogate pair. */
function head(text: string, limit: number): string {
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}

function count(characters: number): string {
  return characters.toLocaleString('en-US');
}
