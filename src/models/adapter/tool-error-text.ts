/**
 * The OpenAI formats have no field for a failed tool call, so the text gets a prefix. The replay server recognizes errors by the
 * same prefix.
 */
const MARK = 'Error: ';

export function toolResultText(text: string, isError: boolean): string {
  return isError ? `${MARK}${text}` : text;
}

export function readToolResult(text: string): { text: string; isError: boolean } {
  return text.startsWith(MARK) ? { text: text.slice(MARK.length), isError: true } : { text, isError: false };
}
