import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { parse } from 'yaml';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { CliIo } from '../io.ts';
import { configFolder } from '../state/config-folder.ts';
import { readInputFile } from './input-files.ts';

/** Write permission of the group and of others. */
const WRITABLE_BY_OTHERS = 0o022;
/** Every permission of the group and of others. */
const OPEN_TO_OTHERS = 0o077;

/** A file in the configuration folder of the user. Only this user decides what Temper starts and trusts. */
export interface PrivateConfig {
  /** Its path, for messages. */
  file: string;
  /** Undefined when there is no file. */
  value: unknown;
}

/**
 * Reads YAML or JSON. Throws TEMPER_MANIFEST_INVALID for a file that others can write, or also read when it has secrets, or that cannot be
 * parsed, and TEMPER_USAGE for one that cannot be read.
 */
export async function readPrivateConfig(
  name: string,
  what: string,
  io: CliIo,
  { hasSecrets = false }: { hasSecrets?: boolean } = {},
): Promise<PrivateConfig> {
  const path = join(configFolder(io), name);
  const file = printable(path);
  const info = await lstat(path).catch(() => undefined);
  if (info === undefined) return { file, value: undefined };
  const [mode, allowed, fix] = hasSecrets
    ? [OPEN_TO_OTHERS, 'read and write', 'chmod go= it']
    : [WRITABLE_BY_OTHERS, 'write', 'chmod go-w it'];
  if (!info.isFile() || (info.mode & mode) !== 0)
    throw new TemperError(
      'TEMPER_MANIFEST_INVALID',
      `${file} is ${what}, so it must be a file that only its user can ${allowed}; ${fix}`,
    );
  const text = await readInputFile(path, what, io);
  try {
    return { file, value: name.endsWith('.json') ? parseUntrustedJson(text) : parse(text, { maxAliasCount: 20 }) };
  } catch (error) {
    throw new TemperError('TEMPER_MANIFEST_INVALID', `${file}: ${printable(messageOf(error, 300))}`, { cause: error });
  }
}

/** The path without symbolic links, also of a folder that is created later. */
export async function realPathOf(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined) return real;
  const parent = dirname(path);
  return parent === path ? path : join(await realPathOf(parent), basename(path));
}

/** Whether the path is the folder or below it. */
export function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}${sep}`);
}
