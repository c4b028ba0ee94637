import { type Command, InvalidArgumentError, Option } from 'commander';
import { MCP_BRIDGE, POD_PATHS, POD_USERS } from '../api/cluster.ts';
import type { CliIo } from './io.ts';
import type { ConfiguredRole } from './serve/serve.ts';

const run = (): Option =>
  new Option('--run <folder>', 'in-memory volume that both containers mount').default(POD_PATHS.run);
const workspace = (): Option =>
  new Option('--workspace <folder>', "folder of the agent's files, as a path in the sandbox container").default(
    POD_PATHS.workspace,
  );
const endpoints = (): Option =>
  new Option(
    '--endpoints <folder>',
    'folder with addresses, server names and CA certificate of gateway and egress proxy',
  ).default(POD_PATHS.endpoints);
const token = (): Option =>
  new Option('--token <file>', 'file with the token for the gateway').default(POD_PATHS.gatewayToken);
const logLevel = (): Option =>
  new Option('--log-level <level>', 'minimum level of log lines')
    .choices(['debug', 'info', 'warn', 'error'])
    .default('info');

function parseCount(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('not a non-negative integer');
  return value;
}

export function addServe(serve: Command, io: CliIo, finish: (exitCode: number) => void): void {
  addPodRoles(serve, io, finish);
  addMcpBridge(serve, io, finish);
  addConfiguredRole(serve, 'gateway', 'the gateway: the HTTP API for pods and users', io, finish);
  addConfiguredRole(serve, 'egress', 'the egress proxy: connections of agents to the internet', io, finish);
  addConfiguredRole(serve, 'operator', 'the operator: the controllers of the custom resources', io, finish);
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
    .requiredOption('--config <file>', 'configuration file of the role, YAML or JSON')
    .action(async (options: { config: string }) => {
      const { serve: run } = await import('./serve/serve.ts');
      finish(await run({ ...options, role }, io));
    });
}

/** An MCP server of the platform, in an image of its own that is built from the sandbox image. */
function addMcpBridge(serve: Command, io: CliIo, finish: (exitCode: number) => void): void {
  serve
    .command('mcp-bridge')
    .description('the bridge between gateways and an MCP server that talks over its standard input and output')
    .requiredOption('--program <json>', 'the server: its command, arguments, environment and folder')
    .option('--sessions <number>', 'sessions at the same time, each with a process of its own', parseCount, 4)
    .option('--memory <mebibytes>', 'memory of the processes of one session', parseCount, 256)
    .option('--homes <folder>', 'folder with a folder for the home of each session, named 0, 1, …', MCP_BRIDGE.homes)
    .option('--host <address>', 'address to listen on; default all')
    .option('--port <number>', 'port to listen on', parseCount, MCP_BRIDGE.port)
    .addOption(logLevel())
    .action(async (options) => {
      const { serveMcpBridgeRole } = await import('./serve/serve-mcp-bridge.ts');
      finish(await serveMcpBridgeRole(options, io));
    });
}

/** Adds the three roles of pods. Each is imported only when it is served: the sandbox image contains only its own modules. */
function addPodRoles(serve: Command, io: CliIo, finish: (exitCode: number) => void): void {
  serve
    .command('agent')
    .description('the agent container of a pod')
    .addOption(run())
    .addOption(workspace())
    .addOption(endpoints())
    .addOption(token())
    .option('--egress-token <file>', 'file with the token for the egress proxy', POD_PATHS.egressToken)
    .option('--grace <seconds>', 'how long work on a message may continue during shutdown', parseCount, 20)
    .addOption(logLevel())
    .action(async (options) => {
      const { serveAgentRole } = await import('./serve/serve-agent.ts');
      finish(await serveAgentRole(options, io));
    });
  serve
    .command('verifier')
    .description('the verifier container of a pod, which runs the tests and inputs of one tool again')
    .addOption(run())
    .addOption(endpoints())
    .addOption(token())
    .addOption(logLevel())
    .action(async (options) => {
      const { serveVerifierRole } = await import('./serve/serve-verifier.ts');
      finish(await serveVerifierRole(options, io));
    });
  serve
    .command('sandbox')
    .description('the sandbox container of a pod')
    .addOption(run())
    .addOption(workspace())
    .option('--program <json>', 'the agent program: its name, folder, program, arguments and environment')
    .option('--program-heap <mebibytes>', 'heap limit of each process of the agent program', parseCount, 512)
    .option(
      '--program-homes <folder>',
      'folder with a folder for the home of each of its processes, named 0 to 3',
      POD_PATHS.programHomes,
    )
    .option('--agent-uid <uid>', 'user that must own the socket folder', parseCount, POD_USERS.agent)
    .addOption(logLevel())
    .action(async (options) => {
      const { serveSandboxRole } = await import('./serve/serve-sandbox.ts');
      finish(await serveSandboxRole(options, io));
    });
}
