/** Finds programs in the folders of programs. Names never contain a folder. */
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** In the order of their search. No agent can write there. */
export const PROGRAM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'] as const;

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$/;

/** Programs that these programs start from other folders, and without which they do not work. */
const HELPERS: Readonly<Record<string, readonly string[]>> = {
  git: ['/usr/lib/git-core', '/usr/libexec/git-core'],
  ...Object.fromEntries(
    ['cc', 'gcc', 'g++', 'c++', 'cpp'].map((name) => [
      name,
      ['/usr/lib/gcc', '/usr/libexec/gcc', '/usr/bin/as', '/usr/bin/ld'],
    ]),
  ),
};

/** The loaders of dynamically linked programs. */
const LOADERS = [
  '/lib64/ld-linux-x86-64.so.2',
  '/lib/ld-linux-aarch64.so.1',
  '/lib/ld-musl-x86_64.so.1',
  '/lib/ld-musl-aarch64.so.1',
];

/** Whether it is a name without a folder. */
export function isProgramName(name: string): boolean {
  return NAME.test(name);
}

/** The real path of the program; undefined when no folder of programs has it. */
async function findProgram(name: string, folders: readonly string[] = PROGRAM_FOLDERS): Promise<string | undefined> {
  if (!isProgramName(name)) return undefined;
  for (const folder of folders) {
    const real = await realpath(join(folder, name)).catch(() => undefined);
    const found = real === undefined ? undefined : await stat(real).catch(() => undefined);
    if (real !== undefined && found?.isFile() === true && (found.mode & 0o111) !== 0) return real;
  }
  return undefined;
}

/** The files and folders that a process may execute: the programs, their interpreters and helpers, and the loaders. */
export async function executableFiles(names: readonly string[] | 'any'): Promise<string[]> {
  if (names === 'any')
    return [...PROGRAM_FOLDERS, '/usr/lib', '/usr/lib64', '/usr/libexec', '/lib', '/lib64', '/usr/local/lib'];
  const files = new Set<string>(LOADERS);
  for (const name of names) {
    for (const file of await withInterpreters(name)) files.add(file);
    for (const helper of HELPERS[name] ?? []) files.add(helper);
  }
  return [...files];
}

/** A script is run by its interpreter, so the right to run it includes that one. */
async function withInterpreters(name: string): Promise<string[]> {
  const file = await findProgram(name);
  if (file === undefined) return [];
  const [interpreter, argument] = await shebang(file);
  if (interpreter === undefined) return [file];
  const real = await realpath(interpreter).catch(() => interpreter);
  const isEnv = basename(interpreter) === 'env' && argument !== undefined;
  const named = isEnv ? await findProgram(argument) : undefined;
  return [file, real, ...(named === undefined ? [] : [named])];
}

const MAX_SHEBANG = 256;

async function shebang(file: string): Promise<string[]> {
  const handle = await open(file, 'r').catch(() => undefined);
  if (handle === undefined) return [];
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_SHEBANG), 0, MAX_SHEBANG, 0);
    const [line = ''] = buffer.toString('latin1', 0, bytesRead).split('\n', 1);
    if (!line.startsWith('#!')) return [];
    return line
      .slice(2)
      .trim()
      .split(/[ \t]+/)
      .filter((word) => word !== '-S');
  } finally {
    await handle.close();
  }
}

/** Throws TEMPER_PROGRAM_NOT_FOUND with the programs that are there. */
export async function requireProgram(name: string): Promise<string> {
  const file = await findProgram(name);
  if (file !== undefined) return file;
  const known = await Promise.all(PROGRAM_FOLDERS.map((folder) => readdir(folder).catch(() => [])));
  const count = new Set(known.flat()).size;
  throw new TemperError(
    'TEMPER_PROGRAM_NOT_FOUND',
    `"${printable(name, 80)}" is none of the ${count} programs of this sandbox; name a program without a folder that the sandbox image has`,
  );
}
