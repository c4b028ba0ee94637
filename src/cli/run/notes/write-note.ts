import { relative } from 'node:path';
import { printable } from '../../../lib/printable.ts';
import type { CliIo } from '../../io.ts';
import { wrap } from '../../transcript/wrap.ts';

const MAX_FILES = 10;

/** Writes a note to standard error, in lines as wide as its terminal. */
export function writeNote(text: string, io: Pick<CliIo, 'error' | 'errorColumns'>): void {
  io.error(`${wrap(`note: ${text}`, io.errorColumns?.(), 2)}\n`);
}

/** One note about all files that are no manifests, with paths relative to the working directory; undefined when there are none. */
export function ignoredFilesNote(files: readonly string[], cwd: string): string | undefined {
  if (files.length === 0) return undefined;
  const names = files.slice(0, MAX_FILES).map((file) => printable(relative(cwd, file), 200));
  const more = files.length > MAX_FILES ? [`and ${files.length - MAX_FILES} more`] : [];
  const [count, they] = files.length === 1 ? ['1 file', 'it has'] : [`${files.length} files`, 'they have'];
  return `${count} skipped, because ${they} no apiVersion and kind: ${[...names, ...more].join(', ')}`;
}
