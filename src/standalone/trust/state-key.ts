import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { link, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditKey, createAuditKey } from '../../audit/signature.ts';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { createFolder, folderProblem } from '../state-folder.ts';

const FILE_NAME = 'state.key';
const FORM = /^temper-state-key:([0-9a-f]{64})\n?$/;
const KEY_BYTES = 32;
const MAX_FILE_BYTES = 1_024;
const ROOT_UID = 0;

/** The key that signs the state folders of a user: one file in the user's configuration folder, which only its owner may read. */
export interface StateKeys {
  /** The folder of the key, which no tool may open. */
  readonly folder: string;
  /** Undefined when the user has no key. Throws TEMPER_STATE_KEY_UNUSABLE for a key that others may read or that is damaged. */
  find(): Promise<AuditKey | undefined>;
  /** Processes that create it at the same time get the same key. Throws TEMPER_STATE_KEY_UNUSABLE when it cannot be stored. */
  findOrCreate(): Promise<AuditKey>;
}

/** `folder`: absolute path of Temper's folder in the configuration folder of the user. */
export function stateKeys(folder: string, uid: number | undefined = process.geteuid?.()): StateKeys {
  const file = join(folder, FILE_NAME);
  const find = async (): Promise<AuditKey | undefined> => {
    const text = await readKeyFile(file, folder, uid);
    if (text === undefined) return undefined;
    const hex = FORM.exec(text)?.[1];
    if (hex === undefined)
      throw unusableKey(`${printable(file)} is not a key`, 'restore it from a backup, or move it away');
    return createAuditKey(Buffer.from(hex, 'hex'));
  };
  return {
    folder,
    find,
    async findOrCreate() {
      const found = await find();
      if (found !== undefined) return found;
      await createKeyFile(file, folder);
      const created = await find();
      if (created !== undefined) return created;
      throw unusableKey(`${printable(file)} was removed at once`, 'repeat the command');
    },
  };
}

async function readKeyFile(file: string, folder: string, uid: number | undefined): Promise<string | undefined> {
  let handle;
  try {
    // A pipe in its place must not make the command wait.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw unusableKey(`${printable(file)} cannot be read: ${folderProblem(error)}`, 'correct its permissions');
  }
  try {
    const stats = await handle.stat();
    const problem = keyFileProblem(stats, await stat(folder), uid, file, folder);
    if (problem !== undefined) throw problem;
    return await handle.readFile('latin1');
  } finally {
    await handle.close();
  }
}

/** Another user that can read the key can sign state folders; one that can write to its folder can replace it. */
function keyFileProblem(
  file: Stats,
  folder: Stats,
  uid: number | undefined,
  path: string,
  folderPath: string,
): TemperError | undefined {
  const shown = printable(path);
  if (!file.isFile() || file.size > MAX_FILE_BYTES) return unusableKey(`${shown} is not a key`, 'move it away');
  if (uid === undefined) return undefined;
  const foreign = [file, folder].find((stats) => stats.uid !== uid && stats.uid !== ROOT_UID);
  if (foreign !== undefined)
    return unusableKey(`${shown} or its folder belongs to user id ${foreign.uid}`, 'move it away');
  if ((file.mode & 0o077) !== 0)
    return unusableKey(`other users may open ${shown}`, `chmod 600 it, or move it away when they may have copied it`);
  if ((folder.mode & 0o022) === 0) return undefined;
  return unusableKey(`other users may write to ${printable(folderPath)}`, 'chmod go-w it');
}

/** Writes the key beside its place and links it there, so that no process ever reads a part of it or replaces the key of another. */
async function createKeyFile(file: string, folder: string): Promise<void> {
  const temporary = `${file}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await createFolder(folder, 0o700);
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(`temper-state-key:${randomBytes(KEY_BYTES).toString('hex')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(temporary, file);
  } catch (error) {
    if (hasErrno(error, 'EEXIST')) return;
    throw unusableKey(
      `the key of your state folders cannot be stored in ${printable(folder)}: ${folderProblem(error)}`,
      'set XDG_CONFIG_HOME to a folder of yours that keeps its files',
    );
  } finally {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

function unusableKey(problem: string, step: string): TemperError {
  return new TemperError('TEMPER_STATE_KEY_UNUSABLE', `${problem}; ${step}`);
}
