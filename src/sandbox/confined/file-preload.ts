import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripTypes } from '../program.ts';

/** The text of `missing-files.ts`, which runs in a confined process before its program. */
export async function filePreload(directory = import.meta.dirname): Promise<string> {
  return stripTypes([await readFile(join(directory, 'missing-files.ts'), 'utf8')]).join('');
}
