/** No call has arguments that are nested deeper. */
const MAX_DEPTH = 64;

/**
 * The index after the JSON object or list that starts at `start`; undefined when it does not end, or is nested too deep. Counts brackets
 * outside of strings, looks at each character once, and checks nothing else: the caller parses the span.
 */
export function jsonSpanEnd(text: string, start: number): number | undefined {
  let depth = 0;
  let inString = false;
  for (let index = start; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
      continue;
    }
    if (character === '"') inString = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth > MAX_DEPTH) return undefined;
    if (depth === 0) return index + 1;
  }
  return undefined;
}
