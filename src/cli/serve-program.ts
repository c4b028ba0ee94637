import { type Command, InvalidArgumentError, Option } from 'commander';
import { POD_PATHS, POD_USERS } from '../api/cluster.ts';
import type { CliIo } from './io.ts';
import type { ConfiguredRole } from './verbs/serve.ts';

const run = (): Option =>
  new Option('--run <folder>', 'volume in memory that both containers mount').default(POD_PATHS.run);
const workspace = (): Option =>
  new Option('--workspace <folder>', "the agent's files, in the sandbox container").default(POD_PATHS.workspace);
const logLevel = (): Option =>
  new Option('--log-level <level>', 'least important line written')
    .choices(['debug', 'info', 'warn', 'error'])
    .default('info');

function number(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('not a whole number');
  return value;
}

export function addServe(serve: Command, io: CliIo, finish: (exitCode: number) => void): void {
  addPodRoles(serve, io, finish);
  addConfiguredRole(serve, 'gateway', 'the door of pods and people', io, finish);
  addConfiguredRole(serve, 'operator', 'the controllers of the resources', io, finish);
}

function addConfiguredRole(
  serve: Command,
  role: ConfiguredRole,
  description: string,
  io: CliIo,
  finish: (exitCode: number) => void,
): void {
  serve
    .command(role)
    .description(description)
    .requiredOption('--config <file>', 'configuration of the role, YAML or JSON')
    .action(async (options: { config: string }) => {
      const { serve: run } = await import('./verbs/serve.ts');
      finish(await run({ ...options, role }, io));
    });
}

/** The roles of a pod. Each is loaded only when it is served: the sandbox image does not hold the other. */
function addPodRoles(serve: Command, io: CliIo, finish: (exitCode: number) => void): void {
  serve
    .command('agent')
    .description('the agent container of a pod')
    .addOption(run())
    .addOption(workspace())
    .addOption(new Option('--doors <folder>', 'address, name and authority of the gateway').default(POD_PATHS.doors))
    .addOption(new Option('--token <file>', 'token for the gateway').default(POD_PATHS.gatewayToken))
    .option('--grace <seconds>', 'how long a message may go on once the pod must stop', number, 20)
    .addOption(logLevel())
    .action(async (options) => {
      const { serveAgentRole } = await import('./verbs/serve-agent.ts');
      finish(await serveAgentRole(options, io));
    });
  serve
    .command('sandbox')
    .description('the sandbox container of a pod')
    .addOption(run())
    .addOption(workspace())
    .option('--agent-uid <uid>', 'who the folder of the socket must belong to', number, POD_USERS.agent)
    .addOption(logLevel())
    .action(async (options) => {
      const { serveSandboxRole } = await import('./verbs/serve-sandbox.ts');
      finish(await serveSandboxRole(options, io));
    });
}
