import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { filePreload } from '../../sandbox/confined/file-preload.ts';
import { stripTypes } from '../../sandbox/program.ts';

const FILES = ['agent-fetch.ts', 'agent-net.ts'];

/** The programs that run in the process of an agent before its own, as text. A bundle holds them as such. */
export async function preloadTexts(directory = import.meta.dirname): Promise<string[]> {
  const texts = await Promise.all(FILES.map((name) => readFile(join(directory, name), 'utf8')));
  return [await filePreload(), ...stripTypes(texts)];
}
