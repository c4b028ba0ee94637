import { isAbsolute, join, relative } from 'node:path';
import { invalidMember, requiredText, textList } from '../../lib/config/config-members.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { ConfinedProgram } from './confined-command.ts';

/** Variables that choose what Node loads, and those that Temper sets itself. */
const RESERVED = ['HOME', 'TMPDIR', 'NODE_OPTIONS', 'NODE_PATH'];

/** A program as a configuration file of the user names it. */
export interface NamedProgram extends ConfinedProgram {
  environment: Readonly<Record<string, string>>;
}

export const PROGRAM_MEMBERS = ['folder', 'program', 'arguments', 'environment'];

/** Reads `folder`, `program`, `arguments` and `environment` of an entry. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function readProgram(file: string, field: string, entry: JsonObject): NamedProgram {
  const folder = readFolder(file, `${field}.folder`, entry['folder']);
  const program = join(folder, requiredText(file, `${field}.program`, entry['program']));
  if (relative(folder, program).startsWith('..'))
    throw invalidMember(file, `${field}.program`, 'must be in the folder');
  return {
    folder,
    program,
    arguments: textList(file, `${field}.arguments`, entry['arguments'] ?? []),
    environment: readEnvironment(file, `${field}.environment`, entry['environment'] ?? {}),
  };
}

export function readFolder(file: string, field: string, value: Json | undefined): string {
  const folder = requiredText(file, field, value);
  if (!isAbsolute(folder) || folder === '/') throw invalidMember(file, field, 'must be an absolute path below /');
  return folder;
}

/** Reads a map of variables, none of which Temper sets itself. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function readEnvironment(file: string, field: string, value: Json): Record<string, string> {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must map names to texts');
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) => {
      if (RESERVED.includes(name)) throw invalidMember(file, `${field}.${name}`, 'is set by Temper');
      if (typeof text !== 'string') throw invalidMember(file, `${field}.${name}`, 'must be a text');
      return [name, text];
    }),
  );
}
