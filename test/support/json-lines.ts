/** The values of newline-delimited JSON. Leaves out a last line without its end, which is still being written. */
export function jsonLines<T>(text: string): T[] {
  const lines = text.split('\n');
  lines.pop();
  return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as T);
}
