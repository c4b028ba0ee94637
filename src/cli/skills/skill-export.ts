import { stringify } from 'yaml';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import { hasErrors } from '../../skills/folder/finding.ts';
import { type CliIo, EXIT } from '../io.ts';
import { findingLines, readSkillFolders } from './read-folders.ts';

export interface ExportSkillsOptions {
  folders: string[];
  namespace?: string;
  output: 'yaml' | 'json';
}

/** Prints the Capabilities, and the findings on standard error. Exit 1, without objects, when a folder has an error. */
export async function exportSkills({ folders, namespace, output }: ExportSkillsOptions, io: CliIo): Promise<number> {
  const read = await readSkillFolders(folders, io);
  for (const line of read.flatMap(findingLines)) io.error(`${line}\n`);
  if (read.some(({ findings }) => hasErrors(findings))) return EXIT.refused;
  const objects = read.flatMap(({ capabilities }) => capabilities).map((one) => inNamespace(one, namespace));
  // The texts of a folder without errors have no character that a terminal would not show.
  io.out(output === 'yaml' ? yamlOf(objects) : jsonOf(objects));
  return EXIT.ok;
}

function inNamespace(capability: Capability, namespace: string | undefined): Capability {
  const { name, ...rest } = capability.metadata;
  return { ...capability, metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...rest } };
}

function yamlOf(objects: readonly Capability[]): string {
  return objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n');
}

function jsonOf(objects: readonly Capability[]): string {
  return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }, null, 2)}\n`;
}
