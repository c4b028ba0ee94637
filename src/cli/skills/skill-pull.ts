import { basename, resolve } from 'node:path';
import { printable } from '../../lib/printable.ts';
import { hasErrors } from '../../skills/folder/finding.ts';
import { type SkillFolder, skillFolderOf, usedFiles } from '../../skills/folder/read-folder.ts';
import type { SkillSource } from '../../skills/folder/source-file.ts';
import { placeSkill, previousSource } from '../../skills/pulled/place-folder.ts';
import { readPulledFiles } from '../../skills/pulled/pulled-files.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { skillFolderOptions } from '../run/programs/user-skills.ts';
import type { RegistryAccessOptions } from '../tools/oci/registry-access.ts';
import { pullFiles, type PulledSkill } from './pull-sources.ts';
import { capabilityIds, findingLines } from './read-folders.ts';

export interface SkillPullOptions extends RegistryAccessOptions {
  /** Where the skill is placed. */
  folder: string;
  /** Replace a folder that an earlier pull made. */
  replace?: boolean;
  output: 'text' | 'json';
}

/**
 * Pulls one skill into a folder that records where it came from. Everything is checked before anything is placed. Exit 1, and no folder,
 * when `skill check` would refuse it.
 */
export async function pullSkill(options: SkillPullOptions, io: CliIo): Promise<number> {
  const folder = resolve(io.cwd, options.folder);
  const before = await previousSource(folder, options.replace === true);
  const pulled = await pullFiles(options, io);
  const found = readPulledFiles(pulled.files);
  const { source, reference } = pulled;
  const read = skillFolderOf({ ...found, name: basename(folder), source }, skillFolderOptions());
  for (const line of findingLines({ path: printable(reference, 300), ...read })) io.error(`${line}\n`);
  if (hasErrors(read.findings)) return EXIT.refused;
  await placeSkill(folder, { files: usedFiles(found.files, read), source, reference }, before !== undefined);
  report({ pulled, folder, before, read }, options, io);
  return EXIT.ok;
}

interface Report {
  pulled: PulledSkill;
  folder: string;
  before: SkillSource | undefined;
  read: SkillFolder;
}

/** With the descriptions: they decide which searches of agents find the skill. */
function report({ pulled, folder, before, read }: Report, { output }: SkillPullOptions, io: CliIo): void {
  const { reference, source, pin, tagNow } = pulled;
  const moved = before?.reference === reference && before.source !== source ? before.source : undefined;
  const capabilities = capabilityIds(read);
  const descriptions = read.capabilities.map(({ spec }) => spec.description);
  if (output === 'json') {
    const more = { ...(moved === undefined ? {} : { previous: moved }), ...(tagNow === undefined ? {} : { tagNow }) };
    writeJsonLine(io, { capabilities, descriptions, folder, reference, source, ...pin, ...more });
    return;
  }
  const lines = [`${capabilities.join(', ')} of ${printable(source, 1_024)} is in ${printable(folder, 300)}`];
  for (const [index, id] of capabilities.entries()) lines.push(`${id}: ${printable(descriptions[index] ?? '', 2_048)}`);
  if (moved !== undefined) lines.push(`${printable(reference, 1_024)} moved; it was ${printable(moved, 1_024)}`);
  if (tagNow !== undefined) lines.push(`the tag has another skill now: ${tagNow}`);
  io.out(`${lines.join('\n')}\n`);
}
