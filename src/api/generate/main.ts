import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { generatedFiles } from './files.ts';

/** Writes the CRDs and the reference pages. Leaves files that are up to date untouched. */
const root = resolve(import.meta.dirname, '../../..');

for (const [path, text] of generatedFiles()) {
  const target = resolve(root, path);
  const current = await readFile(target, 'utf8').catch(() => undefined);
  if (current === text) continue;
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, text);
  process.stdout.write(`${path}\n`);
}
