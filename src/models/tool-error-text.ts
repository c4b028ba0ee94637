/**
 * The OpenAI formats have no field that says a tool failed, so the text does. The mark is also what a replayed
 * conversation is read by.
 */
const MARK = 'Error: ';

export function toolResultText(text: string, isError: boolean): string {
  return isError ? `${MARK}${text}` : text;
}

export function readToolResult(text: string): { text: string; isError: boolean } {
  return text.startsWith(MARK) ? { text: text.slice(MARK.length), isError: true } : { text, isError: false };
}
