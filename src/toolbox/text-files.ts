import { isTemperError } from '../lib/errors.ts';
import { readBelow } from '../tools/host-files.ts';

/** A last line without its end counts. */
export function countLines(whole: string): number {
  let lines = 0;
  for (let at = 0; at < whole.length; at = afterLine(whole, at)) lines += 1;
  return lines;
}

/** Where the line after the one at `from` begins. */
export function afterLine(whole: string, from: number): number {
  const newline = whole.indexOf('\n', from);
  return newline === -1 ? whole.length : newline + 1;
}

/** Nothing for a file that is too large, no text, or gone. */
export async function readText(
  path: string,
  workspace: string,
  roots: readonly string[],
  closed: readonly string[] = [],
): Promise<string | undefined> {
  try {
    const text = await readBelow(path, workspace, roots, () => undefined, closed);
    return text.includes('\0') ? undefined : text;
  } catch (error) {
    if (isTemperError(error, 'TEMPER_FILE_FAILED') || isTemperError(error, 'TEMPER_FILE_DENIED')) return undefined;
    throw error;
  }
}
