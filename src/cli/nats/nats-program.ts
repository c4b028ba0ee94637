import { type Command, Option } from 'commander';
import type { CliIo } from '../io.ts';

export function addNats(program: Command, io: CliIo, finish: (exitCode: number) => void): void {
  program
    .command('nats')
    .description('prepare a NATS server that is not part of an installation')
    .command('permissions')
    .description('print the account that Temper needs: its users, their permissions and its limits')
    .option('--operator-key <key>', 'public nkey of the user operator, U…')
    .option('--gateway-key <key>', 'public nkey of the user gateway, U…')
    .addOption(
      new Option('-o, --output <form>', 'nats-server configuration, or JSON').choices(['text', 'json']).default('text'),
    )
    .action(async (options) => {
      const { natsPermissions } = await import('./permissions.ts');
      finish(natsPermissions(options, io));
    });
}
