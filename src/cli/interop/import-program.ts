import { type Command, Option } from 'commander';
import type { CliIo } from '../io.ts';

/** Adds the verbs that import agents of other systems. */
export function addImport(command: Command, io: CliIo, finish: (exitCode: number) => void): void {
  command
    .command('openfang <paths...>')
    .description('write manifests for agent manifests of OpenFang, and a report about each of their keys')
    .requiredOption('-o, --out-dir <folder>', 'folder for the manifests and reports')
    .option('--policy <name>', 'name of the TrustPolicy of the agents', 'openfang')
    .addOption(new Option('--output <form>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (paths: string[], options) => {
      const { importOpenFang } = await import('./import-openfang.ts');
      finish(await importOpenFang({ ...options, paths }, io));
    });
}
