import { addFinding, type SkillFinding } from '../folder/finding.ts';
import { decodedText, type FolderFiles, isDocument, SKILL_LIMITS, SKILL_PATH } from '../folder/folder-files.ts';
import { printable } from '../../lib/printable.ts';

/** A file from elsewhere. */
export interface PulledFile {
  path: string;
  content: Uint8Array;
}

/**
 * Files from elsewhere under the rules for folders, before any of them is on a disk: what a folder would leave out is left out with a
 * warning, and what a disk could take for another file is an error. Never throws for what the files contain.
 */
export function readPulledFiles(pulled: readonly PulledFile[]): FolderFiles {
  const files = new Map<string, string>();
  const findings: SkillFinding[] = [];
  const report = (level: SkillFinding['level'], path: string, rule: string, why: string, fix: string): void => {
    const file = printable(path, 200);
    addFinding(findings, { level: isDocument(path) ? 'error' : level, file, rule, message: `${file} ${why}`, fix });
  };
  const taken = new Set<string>();
  let bytes = 0;
  for (const { path, content } of pulled.toSorted((one, other) => (one.path < other.path ? -1 : 1))) {
    if (!SKILL_PATH.test(path)) {
      report('warning', path, 'path', 'has a name that is not allowed and is left out', 'rename it');
      continue;
    }
    if (isTaken(taken, path)) report('error', path, 'path', 'is the name of another file or folder too', 'rename one');
    const text = content.length > SKILL_LIMITS.fileBytes ? undefined : decodedText(content);
    if (text === undefined && content.length > SKILL_LIMITS.fileBytes)
      report('warning', path, 'size', `has more than ${SKILL_LIMITS.fileBytes} bytes and is left out`, 'split it');
    else if (text === undefined) report('warning', path, 'encoding', 'is not UTF-8 text and is left out', 'remove it');
    if (text === undefined) continue;
    files.set(path, text);
    bytes += content.length;
  }
  if (files.size > SKILL_LIMITS.files || bytes > SKILL_LIMITS.totalBytes) {
    const message = `the skill has more than ${SKILL_LIMITS.files} files or ${SKILL_LIMITS.totalBytes} bytes`;
    addFinding(findings, { level: 'error', file: '.', rule: 'size', message, fix: 'keep only what the skill needs' });
  }
  return { files, findings };
}

/** Some disks do not tell `a.md` from `A.md`. A file is no folder of another one either. */
function isTaken(taken: Set<string>, path: string): boolean {
  const segments = path.toLowerCase().split('/');
  const folders = segments.slice(1).map((_, index) => `${segments.slice(0, index + 1).join('/')}/`);
  const isFile = segments.join('/');
  const found =
    taken.has(isFile) || taken.has(`${isFile}/`) || folders.some((folder) => taken.has(folder.slice(0, -1)));
  for (const name of [isFile, ...folders]) taken.add(name);
  return found;
}
