import { constants } from 'node:fs';
import { mkdir, open, readFile, realpath, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseDocuments } from '../../../api/yaml-documents.ts';
import { hasErrno, messageOf, TemperError } from '../../../lib/errors.ts';
import { type Json, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import {
  APPROVAL_FILE,
  type GitOpsFile,
  gitOpsFolder,
  REVOCATION_FILE,
  TOOL_FILE,
} from '../../../review/gitops/gitops-files.ts';

/** What an earlier export of the same tool wrote, so that a second export changes nothing. */
export interface EarlierExport {
  readonly nonce?: string;
  readonly approvedBy?: string;
}

const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
const MAX_FILE_BYTES = 512 * 1_024;

/** Reads the files of an earlier export of this digest. Ignores files of another form: the export replaces them. */
export async function earlierExport(
  folder: string,
  of: { namespace: string; object: string; digest: string },
): Promise<EarlierExport> {
  const [tool, approval] = await Promise.all(
    [TOOL_FILE, APPROVAL_FILE].map((name) => readManifest(join(folder, gitOpsFolder(of), name))),
  );
  if (textAt(tool, ['spec', 'digest']) !== of.digest) return {};
  const nonce = textAt(tool, ['spec', 'requestNonce']);
  const approvedBy = textAt(approval, ['spec', 'approvedBy', 'username']);
  return { ...(NONCE.test(nonce) ? { nonce } : {}), ...(approvedBy === '' ? {} : { approvedBy }) };
}

async function readManifest(path: string): Promise<Json | undefined> {
  try {
    const text = await readFile(path, 'utf8');
    if (text.length > MAX_FILE_BYTES) return undefined;
    const { documents, errors } = parseDocuments(text);
    return errors.length === 0 ? documents[0]?.value : undefined;
  } catch (error) {
    if (hasErrno(error, 'ENOENT') || hasErrno(error, 'ENOTDIR') || hasErrno(error, 'EISDIR')) return undefined;
    throw notWritable(path, error);
  }
}

/**
 * Writes the files below the folder, and removes the revocation of an earlier request. The folder is usually a checkout whose content
 * others wrote, so a link in it never leads a file to another place. Throws TEMPER_USAGE.
 */
export async function writeExport(folder: string, files: readonly GitOpsFile[]): Promise<void> {
  const root = resolve(folder);
  const folders = [...new Set(files.map(({ path }) => dirname(path)))];
  try {
    for (const path of folders) await openFolder(root, path);
    for (const { path, text } of files) await replaceFile(join(root, path), text);
    const written = new Set(files.map(({ path }) => path));
    for (const path of folders.map((one) => join(one, REVOCATION_FILE))) {
      if (!written.has(path)) await rm(join(root, path), { force: true });
    }
  } catch (error) {
    throw error instanceof TemperError ? error : notWritable(root, error);
  }
}

async function openFolder(root: string, path: string): Promise<void> {
  await mkdir(join(root, path), { recursive: true });
  if ((await realpath(join(root, path))) !== join(await realpath(root), path)) throw linked(join(root, path));
}

/** Writes a new file, so that neither a link nor a second name of the old file receives the text. */
async function replaceFile(path: string, text: string): Promise<void> {
  await rm(path, { force: true });
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  await using file = await open(path, O_CREAT | O_EXCL | O_WRONLY, 0o644);
  await file.writeFile(text);
}

function linked(path: string): TemperError {
  return new TemperError(
    'TEMPER_USAGE',
    `--gitops: ${printable(path, 400)} is behind a symbolic link; export into a folder without links`,
  );
}

function notWritable(path: string, error: unknown): TemperError {
  const reason = printable(messageOf(error, 200));
  return new TemperError('TEMPER_USAGE', `--gitops: ${printable(path, 400)} cannot be written: ${reason}`);
}
