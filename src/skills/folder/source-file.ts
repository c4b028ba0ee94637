import { join } from 'node:path';
import { hasErrno } from '../../lib/errors.ts';
import { parseUntrustedJson, textAt } from '../../lib/json.ts';
import type { Report } from './finding.ts';
import { readWithoutLinks } from './folder-files.ts';

/** Where a skill was imported from. */
export interface SkillSource {
  /** Exactly: with a digest or the id of a commit. */
  readonly source: string;
  /** As its user named it, such as with a tag; `''` when the file does not say. */
  readonly reference: string;
}

/** The file in a folder that says where its skill comes from. */
export const SOURCE_FILE = '.temper-source.json';
const MAX_SOURCE = 1_024;

/** Where the skill was imported from; undefined for one that its user wrote. A file that cannot be read is an error: it could hide the origin. */
export async function readSource(folder: string, report: Report): Promise<string | undefined> {
  const found = await readSourceFile(folder);
  if (found !== 'unreadable') return found?.source;
  const message = 'it does not say where the skill comes from';
  report({
    level: 'error',
    file: SOURCE_FILE,
    rule: 'source',
    message,
    fix: 'write {"source": "its address"} into it',
  });
  return undefined;
}

/** Undefined when the folder has no such file. */
export async function readSourceFile(folder: string): Promise<SkillSource | 'unreadable' | undefined> {
  try {
    const text = new TextDecoder().decode(await readWithoutLinks(join(folder, SOURCE_FILE)));
    const value = parseUntrustedJson(text);
    const source = textAt(value, ['source']);
    if (source !== '' && source.length <= MAX_SOURCE) return { source, reference: textAt(value, ['reference']) };
  } catch (error) {
    if (hasErrno(error, 'ENOENT') || hasErrno(error, 'ENOTDIR')) return undefined;
  }
  return 'unreadable';
}
