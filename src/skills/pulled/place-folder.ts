import { chmod, lstat, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { SOURCE_FILE, readSourceFile, type SkillSource } from '../folder/source-file.ts';

const FOLDER_MODE = 0o755;
const FILE_MODE = 0o644;

export interface SkillToPlace extends SkillSource {
  /** By path, in the form of `SKILL_PATH`. */
  files: ReadonlyMap<string, string>;
}

/**
 * Where the skill in a folder came from, before it is replaced; undefined when there is no folder. Throws TEMPER_USAGE for a folder that
 * must not be replaced: one that was not asked for, or that no pull made.
 */
export async function previousSource(folder: string, replace: boolean): Promise<SkillSource | undefined> {
  const info = await lstat(folder).catch(() => undefined);
  if (info === undefined) return undefined;
  const shown = printable(folder, 300);
  const found = info.isDirectory() ? await readSourceFile(folder) : undefined;
  if (found === undefined || found === 'unreadable')
    throw new TemperError('TEMPER_USAGE', `${shown} exists and was not pulled; name a folder that does not exist`);
  if (!replace)
    throw new TemperError('TEMPER_USAGE', `${shown} has ${printable(found.source, 300)}; replace it with --replace`);
  return found;
}

/** Writes the skill as one folder, whole or not at all, in place of the folder before when `replace` is true. No file is executable. */
export async function placeSkill(folder: string, skill: SkillToPlace, replace: boolean): Promise<void> {
  // Beside the folder, so that one rename places it. Names with a dot in front are no skills.
  const temporary = await mkdtemp(join(dirname(folder), '.temper-skill-')).catch((error: unknown) => {
    const problem = hasErrno(error, 'ENOENT') ? 'does not exist' : 'cannot be written';
    throw new TemperError('TEMPER_USAGE', `${printable(dirname(folder), 300)} ${problem}`, { cause: error });
  });
  try {
    const [made, before] = [join(temporary, 'new'), join(temporary, 'before')];
    await writeFiles(made, skill);
    if (replace) await rename(folder, before);
    try {
      await rename(made, folder);
    } catch (error) {
      if (replace) await rename(before, folder);
      throw error;
    }
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function writeFiles(root: string, { files, source, reference }: SkillToPlace): Promise<void> {
  const all = new Map([...files, [SOURCE_FILE, `${JSON.stringify({ source, reference })}\n`]]);
  await mkdir(root);
  await chmod(root, FOLDER_MODE);
  for (const [path, text] of all) {
    await mkdir(dirname(join(root, path)), { recursive: true, mode: FOLDER_MODE });
    await writeFile(join(root, path), text, { flag: 'wx', mode: FILE_MODE });
  }
}
