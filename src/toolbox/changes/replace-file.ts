import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** Writes a temporary file and renames it, so that a reader sees either the old text or the new one, and a crash leaves the old one. */
export async function replaceFile(folder: string, name: string, content: string, mode = 0o600): Promise<void> {
  const temporary = join(folder, `.${randomBytes(8).toString('hex')}.tmp`);
  try {
    const handle = await open(temporary, 'wx', mode);
    try {
      // The mask of the process applies to new files only.
      await handle.chmod(mode);
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, join(folder, name));
  } catch (cause) {
    await rm(temporary, { force: true });
    throw new TemperError('TEMPER_FILE_FAILED', `"${printable(name, 200)}" cannot be written`, { cause });
  }
}
