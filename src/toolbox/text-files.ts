import { isTemperError } from '../lib/errors.ts';
import { readFileBelow } from '../tools/host/host-files.ts';

/** Counts lines; a last line without a line feed counts too. */
export function countLines(whole: string): number {
  let lines = 0;
  for (let at = 0; at < whole.length; at = nextLineStart(whole, at)) lines += 1;
  return lines;
}

/** The position of the first character after the line at `from`. */
export function nextLineStart(whole: string, from: number): number {
  const newline = whole.indexOf('\n', from);
  return newline === -1 ? whole.length : newline + 1;
}

/** Reads a text file; undefined when it is too large, not a text, missing or not readable. */
export async function readText(
  path: string,
  workspace: string,
  roots: readonly string[],
  closed: readonly string[] = [],
): Promise<string | undefined> {
  try {
    const text = await readFileBelow(path, workspace, roots, () => undefined, closed);
    return text.includes('\0') ? undefined : text;
  } catch (error) {
    if (isTemperError(error, 'TEMPER_FILE_FAILED') || isTemperError(error, 'TEMPER_FILE_DENIED')) return undefined;
    throw error;
  }
}
