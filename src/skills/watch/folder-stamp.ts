import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SKILL_LIMITS } from '../folder/folder-files.ts';

/** A text that differs after a change of the files below a folder. Bounded like the reading of the folder. */
export async function folderStamp(folder: string): Promise<string> {
  const found: string[] = [];
  const visit = async (path: string, depth: number): Promise<void> => {
    if (depth > SKILL_LIMITS.depth) return;
    const names: string[] = await readdir(join(folder, path)).catch(() => []);
    for (const name of names.sort()) {
      if (found.length > SKILL_LIMITS.entries) return;
      const below = join(path, name);
      const info = await lstat(join(folder, below)).catch(() => undefined);
      if (info === undefined) continue;
      found.push(`${below} ${info.size} ${info.mtimeMs} ${info.ctimeMs} ${info.ino}`);
      if (info.isDirectory()) await visit(below, depth + 1);
    }
  };
  await visit('', 0);
  return found.join('\n');
}
