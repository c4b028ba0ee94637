import { type Command, Option } from 'commander';
import { addClusterOptions, selectsCluster, stateOption as state } from '../../cluster/options.ts';
import type { CliIo } from '../../io.ts';

const output = (): Option =>
  new Option('-o, --output <form>', 'output format').choices(['text', 'json']).default('text');
const plainHttp = (): Option => new Option('--plain-http', 'use http; localhost needs no option');

/** Adds `push`, `pull` and `verify` to the verbs of tools. */
export function addRegistryVerbs(tool: Command, io: CliIo, finish: (exitCode: number) => void): void {
  addClusterOptions(tool.command('push <tool> <reference>'))
    .description('push a forged tool to an OCI registry, with its signed attestation')
    .addOption(state())
    .addOption(plainHttp())
    .option('--no-attestation', 'push the package alone')
    .addOption(output())
    .action(async (name: string, reference: string, options) => {
      const { toolPush } = await import('./tool-push.ts');
      const push = () => toolPush({ ...options, tool: name, reference }, io);
      if (selectsCluster(options, io)) return finish(await push());
      const { readingState } = await import('../../state/state-folder.ts');
      finish(await readingState(options.state, push));
    });
  tool
    .command('pull <reference>')
    .description('print the package of a tool in an OCI registry, to import it')
    .option('--file <file>', 'write to this file instead of standard output')
    .option('--attestation <file>', 'write the attestation of the tool to this file')
    .option('--trusted-key <file>', 'the public key that must have signed an attestation of the tool')
    .addOption(plainHttp())
    .addOption(output())
    .action(async (reference: string, options) => {
      const { toolPull } = await import('./tool-pull.ts');
      finish(await toolPull({ ...options, reference }, io));
    });
  tool
    .command('verify <file>')
    .description('verify that a key signed the attestation of a package')
    .requiredOption('--attestation <file>', 'the attestation of the package')
    .requiredOption('--trusted-key <file>', 'the public key that must have signed it')
    .addOption(output())
    .action(async (file: string, options) => {
      const { toolVerify } = await import('../tool-verify.ts');
      finish(await toolVerify({ ...options, file }, io));
    });
}
