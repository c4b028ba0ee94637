import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { hasErrno, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { CliIo } from '../io.ts';

/** Larger than any file of tools in practice, and below the longest string of the engine. */
const MAX_BYTES = 256 * 1_048_576;

/**
 * The text of a file that the command line names; `-` is standard input. `option` is its name in messages. Throws TEMPER_USAGE when
 * it cannot be read, is too large, or is not UTF-8 text.
 */
export async function readInputFile(file: string, option: string, io: CliIo): Promise<string> {
  if (file === '-') return io.stdin();
  const path = await assertInputFile(file, option, io);
  const bytes = await readFile(path).catch((error: unknown) => {
    throw unusable(option, file, reasonOf(error));
  });
  if (bytes.byteLength > MAX_BYTES) throw unusable(option, file, `is larger than ${MAX_BYTES} bytes`);
  return utf8Text(bytes, () => unusable(option, file, 'is not UTF-8 text'));
}

/** The absolute path of a file that can be read. Throws TEMPER_USAGE otherwise. */
export async function assertInputFile(file: string, option: string, io: CliIo): Promise<string> {
  const path = resolve(io.cwd, file);
  try {
    if (file !== '' && !(await stat(path)).isDirectory()) {
      await access(path, constants.R_OK);
      return path;
    }
  } catch (error) {
    throw unusable(option, file, reasonOf(error));
  }
  throw unusable(option, file, file === '' ? 'names no file' : 'is a folder; name a file');
}

/** Decodes UTF-8, without a byte order mark. Throws the error of `onInvalid` for other bytes. */
export function utf8Text(bytes: Uint8Array, onInvalid: () => Error): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw onInvalid();
  }
}

function reasonOf(error: unknown): string {
  if (hasErrno(error, 'ENOENT') || hasErrno(error, 'ENOTDIR')) return 'does not exist';
  if (hasErrno(error, 'EACCES')) return 'may not be read';
  return `cannot be read: ${printable(messageOf(error, 200))}`;
}

function unusable(option: string, file: string, reason: string): TemperError {
  const named = [option, file === '' ? '""' : printable(file, 400)].filter((word) => word !== '').join(' ');
  return new TemperError('TEMPER_USAGE', `${named} ${reason}`);
}
