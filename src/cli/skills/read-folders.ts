import { resolve } from 'node:path';
import { readSkillFolder, type SkillFolder } from '../../skills/folder/read-folder.ts';
import { findSkillFolders } from '../../skills/watch/find-folders.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { CliIo } from '../io.ts';
import { skillFolderOptions } from '../run/programs/user-skills.ts';

export interface NamedSkillFolder extends SkillFolder {
  /** Its path, for messages. */
  path: string;
}

/** The skills at the paths: folders of one skill, and folders with such folders. Throws TEMPER_USAGE for a path without one. */
export async function readSkillFolders(paths: readonly string[], io: CliIo): Promise<NamedSkillFolder[]> {
  const options = skillFolderOptions();
  const found: NamedSkillFolder[] = [];
  for (const path of paths) {
    const folders = await findSkillFolders(resolve(io.cwd, path));
    if (folders.length === 0)
      throw new TemperError('TEMPER_USAGE', `${printable(path, 300)} has no folder with SKILL.md or CAPABILITY.yaml`);
    for (const folder of folders) found.push({ path: folder, ...(await readSkillFolder(folder, options)) });
  }
  return found;
}

/** `kind:name` of each capability. */
export function capabilityIds({ capabilities }: Pick<SkillFolder, 'capabilities'>): string[] {
  return capabilities.map(({ metadata, spec }) => `${spec.type.toLowerCase()}:${metadata.name}`);
}

/** One line for each finding. */
export function findingLines({ path, findings }: NamedSkillFolder): string[] {
  return findings.map(
    ({ level, file, rule, message, fix }) => `${level}: ${printable(path, 300)}/${file}: ${message} [${rule}]; ${fix}`,
  );
}
