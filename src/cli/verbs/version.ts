import { readFile } from 'node:fs/promises';
import { type CliIo, EXIT } from '../io.ts';

export async function version(io: CliIo): Promise<number> {
  const manifest = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  io.out(`temper ${manifest.version} (node ${process.versions.node})\n`);
  return EXIT.ok;
}
