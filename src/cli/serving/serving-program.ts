import { type Command, Option } from 'commander';
import { addClusterOptions, isPlugin, refusePlugin, stateOption } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';

type SetExitCode = (exitCode: number) => void;

/** Adds the verb that serves an agent to an editor. */
export function addAcp(program: Command, io: CliIo, finish: SetExitCode): void {
  program
    .command('acp', { hidden: isPlugin(io) })
    .description('serve an agent to an editor (Agent Client Protocol on standard input and output)')
    .addOption(files())
    .option('--agent <name>', 'agent name, when the manifests contain several agents')
    .option('--namespace <name>', 'namespace of the agent, when several agents have its name')
    .option('--workspace <folder>', 'folder that the agent may read and write', '.')
    .option('--skills <folder...>', 'folders with skills')
    .option('--providers <file>', 'file with model providers')
    .addOption(modelScript())
    .addOption(stateOption())
    .action(async (options) => {
      refusePlugin('acp', io);
      const { acp } = await import('../acp/acp.ts');
      finish(await acp(options, io));
    });
}

/** Adds the verb that serves an agent to a client: of a cluster for the plug-in of kubectl, else in this process. */
export function addMcp(mcp: Command, io: CliIo, finish: SetExitCode): void {
  if (isPlugin(io)) return addClusterMcp(mcp, io, finish);
  mcp
    .command('serve')
    .description('serve the tools of an agent (Model Context Protocol on standard input and output)')
    .addOption(files())
    .option('--agent <name>', 'agent name, when the manifests contain several agents')
    .option('--namespace <name>', 'namespace of the agent, when several agents have its name')
    .option('--session <id>', 'session of the calls, with its tools; default: a new one')
    .option('--workspace <folder>', 'folder that the agent may read and write', '.')
    .option('--skills <folder...>', 'folders with skills')
    .option('--providers <file>', 'file with model providers')
    .addOption(modelScript())
    .addOption(stateOption())
    .action(async (options) => {
      const { mcpServe } = await import('../mcp/mcp-serve.ts');
      finish(await mcpServe(options, io));
    });
}

function addClusterMcp(mcp: Command, io: CliIo, finish: SetExitCode): void {
  addClusterOptions(
    mcp.command('serve').description('serve an agent (Model Context Protocol on standard input and output)'),
  )
    .requiredOption('--agent <name>', 'agent name')
    .option('--session <id>', 'session of the messages; default: a new one')
    .action(async (options) => {
      const { clusterServe } = await import('../mcp/cluster/cluster-serve.ts');
      finish(await clusterServe(options, io));
    });
}

/** Adds the verbs for the MCP servers of the user. */
export function addMcpServers(mcp: Command, io: CliIo, finish: SetExitCode): void {
  mcp
    .command('tools <server>', { hidden: isPlugin(io) })
    .description('print the tools of an MCP server of mcp.yaml, and which of them are accepted')
    .addOption(new Option('-o, --output <form>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (server: string, options) => {
      refusePlugin('mcp tools', io);
      const { listTools } = await import('../mcp/servers/list-tools.ts');
      finish(await listTools({ ...options, server }, io));
    });
  mcp
    .command('accept <server>', { hidden: isPlugin(io) })
    .description('accept the tools of an MCP server, in place of those that were accepted before')
    .requiredOption('--digest <digest>', 'the digest that `temper mcp tools` printed')
    .option('--tool <name...>', 'accept only these tools')
    .action(async (server: string, options) => {
      refusePlugin('mcp accept', io);
      const { acceptTools } = await import('../mcp/servers/accept-tools.ts');
      finish(await acceptTools({ ...options, server }, io));
    });
  mcp
    .command('manifest <server>', { hidden: isPlugin(io) })
    .description('print accepted tools of an MCP server as Capabilities for a cluster')
    .option('--tool <name...>', 'print only these tools')
    .option('--connection <name>', 'connection of the gateway with the credential of the server')
    .option('-n, --namespace <name>', 'namespace of the objects')
    .addOption(new Option('-o, --output <form>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .action(async (server: string, options) => {
      refusePlugin('mcp manifest', io);
      const { printManifests } = await import('../mcp/servers/print-manifests.ts');
      finish(await printManifests({ ...options, server }, io));
    });
}

const files = (): Option => new Option('-f, --filename <path...>', 'manifest files or folders').makeOptionMandatory();
const modelScript = (): Option =>
  new Option('--model-script <file>', 'answer from a replay script instead of a provider').conflicts('providers');
