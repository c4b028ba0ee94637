import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { printable } from '../printable.ts';

/**
 * Escapes every string of a value that a pod or a file names, the names of members too, where it enters a program of Temper. Line breaks stay: each
 * printer decides what a line is. Printers escape again, which changes nothing, so a printer that forgets it shows nothing unescaped.
 */
export function withPrintableStrings(value: Json): Json {
  if (typeof value === 'string') return printableLines(value);
  if (Array.isArray(value)) return value.map(withPrintableStrings);
  if (!isJsonObject(value)) return value;
  const escaped: JsonObject = Object.create(null) as JsonObject;
  for (const [name, member] of Object.entries(value)) escaped[printableLines(name)] = withPrintableStrings(member);
  return escaped;
}

function printableLines(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line, Number.POSITIVE_INFINITY))
    .join('\n');
}
