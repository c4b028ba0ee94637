import { lstat, open, opendir } from 'node:fs/promises';
import { constants } from 'node:fs';
import { join } from 'node:path';
import { hasErrno } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { addFinding, type SkillFinding } from './finding.ts';

/** The text files of a folder. */
export interface FolderFiles {
  /** By relative path with `/`, in the order of the paths. */
  files: ReadonlyMap<string, string>;
  findings: readonly SkillFinding[];
}

export const SKILL_LIMITS = {
  /** Files and folders that are looked at. */
  entries: 1_000,
  depth: 8,
  files: 66,
  fileBytes: 128 * 1_024,
  totalBytes: 768 * 1_024,
} as const;

/** The form of paths in a Capability; see `spec.resources[].path`. */
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;
const MAX_PATH = 200;
/** A whole path of that form, without hidden names, `.` and `..`. */
export const SKILL_PATH = /^(?=.{1,200}$)[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(?:\/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,7}$/;

/** Reads the text files below the folder. Hidden files are left out, links are not followed. Never throws for what a folder contains. */
export async function readFolderFiles(folder: string): Promise<FolderFiles> {
  const walk = new FolderWalk(folder);
  await walk.visit('', 0);
  return { files: new Map([...walk.files].sort(([a], [b]) => (a < b ? -1 : 1))), findings: walk.findings };
}

class FolderWalk {
  readonly files = new Map<string, string>();
  readonly findings: SkillFinding[] = [];
  readonly #folder: string;
  #entries = 0;
  #bytes = 0;
  #isOver = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async visit(path: string, depth: number): Promise<void> {
    if (depth > SKILL_LIMITS.depth) return this.#leave(path, 'depth', 'is nested too deep', 'move it up');
    const names = await this.#namesIn(path);
    for (const name of names) {
      if (this.#isOver) return;
      const below = path === '' ? name : `${path}/${name}`;
      if (name.startsWith('.')) continue;
      if (!SEGMENT.test(name) || below.length > MAX_PATH) {
        this.#leave(below, 'path', 'has a name that is not allowed', 'use letters, digits, dots, _ and - in its name');
        continue;
      }
      await this.#take(below, depth);
    }
  }

  /** Sorted, and never more than the limit. */
  async #namesIn(path: string): Promise<string[]> {
    const names: string[] = [];
    try {
      for await (const entry of await opendir(join(this.#folder, path))) {
        this.#entries += 1;
        if (this.#entries > SKILL_LIMITS.entries) {
          this.#tooMuch(`the folder has more than ${SKILL_LIMITS.entries} files and folders`);
          break;
        }
        names.push(entry.name);
      }
    } catch (error) {
      this.#leave(path === '' ? '.' : path, 'unreadable', reasonOf(error), 'make it readable', 'error');
    }
    return names.sort();
  }

  async #take(path: string, depth: number): Promise<void> {
    const info = await lstat(join(this.#folder, path)).catch(() => undefined);
    if (info === undefined) return;
    if (info.isDirectory()) return this.visit(path, depth + 1);
    if (info.isSymbolicLink()) return this.#leave(path, 'link', 'is a link', 'put the file itself there');
    if (!info.isFile()) return this.#leave(path, 'no-file', 'is not a regular file', 'remove it');
    if (info.size > SKILL_LIMITS.fileBytes) return this.#tooLarge(path);
    const text = await this.#text(path);
    if (text === undefined) return;
    if (this.files.size >= SKILL_LIMITS.files)
      return this.#tooMuch(`the folder has more than ${SKILL_LIMITS.files} files`);
    this.files.set(path, text);
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > SKILL_LIMITS.totalBytes)
      this.#tooMuch(`the files of the folder have more than ${SKILL_LIMITS.totalBytes} bytes`);
  }

  async #text(path: string): Promise<string | undefined> {
    const bytes = await readWithoutLinks(join(this.#folder, path)).catch((error: unknown) => {
      this.#leave(path, 'unreadable', reasonOf(error), 'make it readable', 'error');
      return undefined;
    });
    if (bytes === undefined) return undefined;
    if (bytes.length > SKILL_LIMITS.fileBytes) {
      this.#tooLarge(path);
      return undefined;
    }
    const text = decodedText(bytes);
    if (text !== undefined) return text;
    this.#leave(
      path,
      'encoding',
      'is not UTF-8 text',
      'save it as UTF-8, or remove it',
      isDocument(path) ? 'error' : 'warning',
    );
    return undefined;
  }

  #tooLarge(path: string): void {
    const level = isDocument(path) ? 'error' : 'warning';
    this.#leave(path, 'size', `has more than ${SKILL_LIMITS.fileBytes} bytes`, 'split it', level);
  }

  #tooMuch(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    addFinding(this.findings, {
      level: 'error',
      file: '.',
      rule: 'size',
      message,
      fix: 'keep only what the skill needs',
    });
  }

  /** A link in place of a document is an error: the skill would be another one than its author sees. */
  #leave(path: string, rule: string, why: string, fix: string, level: SkillFinding['level'] = 'warning'): void {
    const file = printable(path, MAX_PATH);
    const message = `${file} ${why} and is left out`;
    addFinding(this.findings, { level: isDocument(path) ? 'error' : level, file, rule, message, fix });
  }
}

/** Undefined for bytes that are not UTF-8 text. */
export function decodedText(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

export function isDocument(path: string): boolean {
  return path === 'SKILL.md' || path === 'CAPABILITY.yaml';
}

/** A file that became a link since it was looked at is not opened. Never reads more than one byte beyond the limit. */
export async function readWithoutLinks(path: string): Promise<Uint8Array> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.alloc(SKILL_LIMITS.fileBytes + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.subarray(0, length);
  } finally {
    await handle.close();
  }
}

function reasonOf(error: unknown): string {
  if (hasErrno(error, 'ENOENT')) return 'does not exist';
  if (hasErrno(error, 'ELOOP')) return 'is a link';
  return hasErrno(error, 'EACCES') ? 'may not be read' : 'cannot be read';
}
