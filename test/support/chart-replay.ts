import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readReplayScript } from '../../src/models/replay/script/read-script.ts';
import type { ReplayRule } from '../../src/models/replay/script/script.ts';

const FILES = fileURLToPath(new URL('../../charts/temper/files', import.meta.url));

/** The rules of the script that the chart installs: those of the samples, sorted by name, and then those of the quick start. */
export async function chartReplayRules(): Promise<ReplayRule[]> {
  const samples = (await readdir(join(FILES, 'samples'))).sort();
  const paths = [...samples.map((name) => join('samples', name)), 'replay.yaml'];
  const scripts = paths.map(async (path) => readReplayScript(await readFile(join(FILES, path), 'utf8'), path));
  return (await Promise.all(scripts)).flatMap(({ rules }) => rules);
}
