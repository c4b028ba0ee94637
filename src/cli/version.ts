import { type CliIo, EXIT } from './io.ts';
import { packageVersion } from './tracing.ts';

export async function version(io: CliIo): Promise<number> {
  io.out(`temper ${await packageVersion()} (node ${process.versions.node})\n`);
  return EXIT.ok;
}
