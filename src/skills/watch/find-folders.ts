import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

const DOCUMENTS = ['SKILL.md', 'CAPABILITY.yaml'];
const MAX_FOLDERS = 200;

/** The folders of skills at a path: the folder itself, or those directly below it. Links are not followed. Throws TEMPER_USAGE. */
export async function findSkillFolders(root: string): Promise<string[]> {
  if (await isSkillFolder(root)) return [root];
  const entries = await readdir(root, { withFileTypes: true }).catch((error: unknown) => {
    throw new TemperError('TEMPER_USAGE', `${printable(root)} is not a folder that can be read`, { cause: error });
  });
  const found: string[] = [];
  for (const entry of entries) {
    if (!entry.isDirectory() || entry.name.startsWith('.')) continue;
    const folder = join(root, entry.name);
    if (await isSkillFolder(folder)) found.push(folder);
  }
  if (found.length <= MAX_FOLDERS) return found.sort();
  throw new TemperError('TEMPER_USAGE', `${printable(root)} has more than ${MAX_FOLDERS} skills; name fewer`);
}

async function isSkillFolder(folder: string): Promise<boolean> {
  for (const name of DOCUMENTS) {
    if ((await lstat(join(folder, name)).catch(() => undefined)) !== undefined) return true;
  }
  return false;
}
