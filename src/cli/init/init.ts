import { stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { createFolder, folderProblem } from '../../standalone/state-folder.ts';
import { type CliIo, EXIT } from '../io.ts';
import { initialFiles } from './init-files.ts';

export interface InitOptions {
  /** Created when it does not exist. */
  folder: string;
}

/** Writes the files of a new project. Throws TEMPER_USAGE, and writes nothing, when one of them exists. */
export async function init({ folder }: InitOptions, io: CliIo): Promise<number> {
  const root = resolve(io.cwd, folder);
  if (folder === '')
    throw new TemperError('TEMPER_USAGE', 'the folder has no name; name one, or leave it out for this folder');
  const files = initialFiles();
  const existing: string[] = [];
  for (const path of files.keys()) if (await exists(join(root, path))) existing.push(path);
  if (existing.length > 0) {
    const message = `${printable(folder, 200)} already has ${existing.join(', ')}; nothing was written. Choose another folder`;
    throw new TemperError('TEMPER_USAGE', message);
  }
  for (const [path, text] of files) {
    await write(join(root, path), text);
    io.out(`${printable(join(folder, path), 400)}\n`);
  }
  io.out(nextSteps(folder));
  return EXIT.ok;
}

function nextSteps(folder: string): string {
  const enter = folder === '.' ? [] : [`  cd ${shellWord(printable(folder, 200))}`];
  return [
    '',
    'Next:',
    ...enter,
    '  temper validate -f manifests',
    '  temper tool check tools/*.yaml',
    '  temper tool import tools/word_count.yaml --agent assistant',
    '  temper run -f manifests --model-script tests/replay.yaml -m "How many words has this text?"',
    '  temper run -f manifests        # with OPENAI_API_KEY or ANTHROPIC_API_KEY',
    '',
  ].join('\n');
}

/** The word as a POSIX shell reads it. */
function shellWord(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return false;
    throw unwritable(path, error);
  }
}

/** Never replaces a file that another process created meanwhile. */
async function write(path: string, text: string): Promise<void> {
  try {
    await createFolder(dirname(path));
    await writeFile(path, text, { flag: 'wx' });
  } catch (error) {
    throw unwritable(path, error);
  }
}

function unwritable(path: string, cause: unknown): TemperError {
  const reason = folderProblem(cause);
  const message = `${printable(path, 400)} cannot be written: ${reason}; choose another folder`;
  return new TemperError('TEMPER_USAGE', message, { cause });
}
