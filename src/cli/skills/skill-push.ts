import { basename, resolve } from 'node:path';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { SKILL } from '../../oci/manifest.ts';
import { digestOfTag } from '../../oci/pull.ts';
import { pushArtifact } from '../../oci/push.ts';
import { hasErrors } from '../../skills/folder/finding.ts';
import { readFolderFiles } from '../../skills/folder/folder-files.ts';
import { skillFolderOf, usedFiles } from '../../skills/folder/read-folder.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { skillFolderOptions } from '../run/programs/user-skills.ts';
import { registryAccess, type RegistryAccessOptions } from '../tools/oci/registry-access.ts';
import { capabilityIds, findingLines } from './read-folders.ts';

export interface SkillPushOptions extends RegistryAccessOptions {
  folder: string;
  output: 'text' | 'json';
}

/** Pushes the folder of one skill to an OCI registry: the files that an agent gets, and nothing else. Exit 1 when the folder has an error. */
export async function pushSkill(options: SkillPushOptions, io: CliIo): Promise<number> {
  const { reference, client, op } = registryAccess(options, 'pull,push', io);
  if (reference.tag === undefined || reference.digest !== undefined)
    throw new TemperError('TEMPER_USAGE', `"${reference.text}" must name a tag and no digest, to push to it`);
  const path = resolve(io.cwd, options.folder);
  const found = await readFolderFiles(path);
  const read = skillFolderOf({ ...found, name: basename(path), source: undefined }, skillFolderOptions());
  for (const line of findingLines({ path, ...read })) io.error(`${line}\n`);
  if (hasErrors(read.findings)) return EXIT.refused;
  const files = [...usedFiles(found.files, read)].map(([title, text]) => ({ title, text }));
  const capabilities = capabilityIds(read);
  const annotations = { 'dev.temper.skill.capabilities': capabilities.join(' ') };
  const before = await digestOfTag(client, reference.tag, op);
  const manifest = await pushArtifact(client, reference, { kind: SKILL, files, annotations }, op);
  const moved = before === undefined || before === manifest ? undefined : before;
  if (options.output === 'json') {
    const previous = moved === undefined ? {} : { previous: moved };
    writeJsonLine(io, { capabilities, reference: reference.text, manifest, ...previous });
    return EXIT.ok;
  }
  const said = moved === undefined ? '' : `; the tag ${printable(reference.tag)} moved, it was at ${moved}`;
  io.out(`${capabilities.join(', ')} is at ${reference.text}@${manifest}${said}\n`);
  return EXIT.ok;
}
