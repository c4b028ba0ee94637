import { type CliIo, EXIT } from '../io.ts';
import { ownVersion } from '../tracing.ts';

export async function version(io: CliIo): Promise<number> {
  io.out(`temper ${await ownVersion()} (node ${process.versions.node})\n`);
  return EXIT.ok;
}
