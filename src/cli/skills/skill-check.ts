import { hasErrors } from '../../skills/folder/finding.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { capabilityIds, findingLines, type NamedSkillFolder, readSkillFolders } from './read-folders.ts';

export interface CheckSkillsOptions {
  folders: string[];
  output: 'text' | 'json';
}

/** Exit 1 when a folder has an error. */
export async function checkSkills({ folders, output }: CheckSkillsOptions, io: CliIo): Promise<number> {
  const read = await readSkillFolders(folders, io);
  for (const folder of read) {
    if (output === 'json') writeJsonLine(io, jsonOf(folder));
    else io.out([...findingLines(folder), ...summaries(folder)].map((line) => `${line}\n`).join(''));
  }
  return read.some(({ findings }) => hasErrors(findings)) ? EXIT.refused : EXIT.ok;
}

function jsonOf(folder: NamedSkillFolder) {
  const findings = folder.findings.map((finding) => ({ ...finding }));
  return { folder: folder.path, capabilities: capabilityIds(folder), findings };
}

function summaries({ capabilities }: NamedSkillFolder): string[] {
  return capabilities.map(({ metadata, spec }) => {
    const { type, content = '', resources = [] } = spec;
    const texts = content === '' ? '' : `, ${content.length} characters, ${resources.length} resources`;
    return `${type.toLowerCase()}:${metadata.name} is valid${texts}`;
  });
}
