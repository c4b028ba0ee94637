import { Command, InvalidArgumentError, Option } from 'commander';
import type { Capability } from '../api/v1alpha1/capability.ts';
import { TemperError } from '../lib/errors.ts';
import { printableDocument } from '../lib/printable.ts';
import {
  addClusterOptions,
  isPlugin,
  refusePlugin,
  stateOption as state,
  type ClusterOptions,
  selectsCluster,
} from './cluster/options.ts';
import type { AuditOptions } from './audit/audit.ts';
import { addClusterVerbs } from './cluster-program.ts';
import { addHelpCommands, reportUnknownFirst } from './help/help-command.ts';
import { helpLayout, helpWidths } from './help/help-layout.ts';
import type { CliIo } from './io.ts';
import { addObjectVerbs } from './objects/object-program.ts';
import { addImport } from './interop/import-program.ts';
import { addAcp, addMcp, addMcpServers } from './serving/serving-program.ts';
import { addPolicy } from './manifests/policy-program.ts';
import { addNats } from './nats/nats-program.ts';
import { addRegistryVerbs } from './tools/oci/oci-program.ts';
import { addSkillVerbs } from './skills/skill-program.ts';
import { addServe } from './serve-program.ts';
import { versionText } from './version.ts';

/** Sets the exit code of the process. */
type SetExitCode = (exitCode: number) => void;

const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

function parseCount(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('not a non-negative integer');
  return number;
}

const output = (): Option =>
  new Option('-o, --output <form>', 'output format').choices(['text', 'json']).default('text');
const files = (): Option => new Option('-f, --filename <path...>', 'manifest files or folders').makeOptionMandatory();

/** Creates the command line. The module of a verb is imported only when the verb runs, so that `--help` starts fast. */
export function createProgram(io: CliIo, finish: SetExitCode): Command {
  const program = new Command(isPlugin(io) ? 'kubectl temper' : 'temper')
    .description('Run AI agents that make their own tools, under policies that control what agents and tools may do.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => io.error(printableDocument(text)),
      ...helpWidths(io),
    })
    .configureHelp(helpLayout())
    .showHelpAfterError('(see temper help)');
  addRun(program, io, finish);
  addObjectVerbs(program, io, finish);
  addTrace(program, io, finish);
  addAcp(program, io, finish);
  const about = isPlugin(io) ? 'serve an agent to an MCP client' : 'serve tools, and use those of MCP servers';
  const mcp = program.command('mcp').description(about);
  addMcp(mcp, io, finish);
  addMcpServers(mcp, io, finish);
  addAudit(program, io, finish);
  addDecisions(program, io, finish);
  addReactivate(program, io, finish);
  addClusterVerbs(program, io, finish);
  addManifests(program, io, finish);
  addImport(program.command('import').description('import agents of other systems'), io, finish);
  addDiscover(program, io, finish);
  addPolicy(program.command('policy').description('explain policy decisions'), io, finish);
  const tool = program.command('tool').description('check, call, export, import, push and pull tools');
  addTool(tool, io, finish);
  addToolAudit(tool, io, finish);
  addPackages(tool, io, finish);
  addRegistryVerbs(tool, io, finish);
  const skill = program.command('skill', { hidden: isPlugin(io) }).description('check, export, push and pull skills');
  addSkillVerbs(skill, io, finish);
  addModel(program.command('model').description('test models and replay scripts'), io, finish);
  addNats(program, io, finish);
  addServe(
    program.command('serve').description('run one component of an installation on a cluster, until SIGTERM'),
    io,
    finish,
  );
  program
    .version(versionText(), '-V, --version', 'print the version')
    .command('version')
    .description('print the version')
    .action(() => {
      io.out(`${versionText()}\n`);
    });
  addHelpCommands(program);
  reportUnknownFirst(program);
  return program.hook('preAction', (_, action) => assertValues(action));
}

/** An empty value is a shell variable that is not set. As a path it would mean the current folder. */
function assertValues(command: Command): void {
  for (const option of command.options) {
    if (MAY_BE_EMPTY.includes(option.attributeName())) continue;
    const values: unknown[] = [command.getOptionValue(option.attributeName())].flat();
    if (!values.some((value) => typeof value === 'string' && value.trim() === '')) continue;
    throw new TemperError('TEMPER_USAGE', `${option.long ?? option.flags} is empty; give it a value, or leave it out`);
  }
}

const MAY_BE_EMPTY: readonly string[] = ['selector', 'system', 'input'];

function addRun(program: Command, io: CliIo, finish: SetExitCode): void {
  program
    .command('run')
    .description('run an agent in this process')
    .addOption(files())
    .option('-m, --message <text>', 'message to the agent; - reads standard input; may be repeated', collect)
    .option('--agent <name>', 'agent name, when the manifests contain several agents')
    .option('--namespace <name>', 'namespace of the agent, when several agents have its name')
    .addOption(new Option('--session <id>', 'session name; continues the session if it exists').conflicts('continue'))
    .option('--continue', 'continue the last session of the agent')
    .addOption(
      new Option('--serve', 'start the runs of schedules of all agents, until Ctrl-C').conflicts([
        'message',
        'agent',
        'session',
        'continue',
      ]),
    )
    .addOption(
      new Option('--webhooks <port>', 'with --serve: receive signed requests at 127.0.0.1').argParser(parseCount),
    )
    .addOption(new Option('--a2a <port>', 'with --serve: answer callers over A2A at 127.0.0.1').argParser(parseCount))
    .option('--workspace <folder>', 'folder that the agent may read and write', '.')
    .option('--skills <folder...>', 'folders with skills, beside those of the configuration folder')
    .option('--providers <file>', 'file with model providers')
    .addOption(
      new Option('--model-script <file>', 'answer from a replay script instead of a provider').conflicts('providers'),
    )
    .addOption(state())
    .addOption(
      new Option('-o, --output <form>', 'output format; default: text on a terminal, otherwise json').choices([
        'text',
        'json',
      ]),
    )
    .action(async (options) => {
      const { run } = await import('./run/run.ts');
      finish(await run(options, io));
    });
}

function addTrace(program: Command, io: CliIo, finish: SetExitCode): void {
  addClusterOptions(
    program.command('trace <session>').description('print a past conversation: messages, calls, results and replies'),
  )
    .option(
      '--agent <name>',
      'agent of the session; required on a cluster, and when several agents have a session of this id',
    )
    .addOption(state())
    .addOption(output())
    .action(async (session: string, options) => {
      if (selectsCluster(options, io)) {
        const { traceSession } = await import('./cluster/messages/trace-session.ts');
        return finish(await traceSession({ ...options, session }, io));
      }
      const { trace } = await import('./state/trace.ts');
      const { readingState } = await import('./state/state-folder.ts');
      finish(await readingState(options.state, () => trace({ ...options, session }, io)));
    });
}

/** Adds the verbs for the provenance chain of a state folder; `verify` and `show` also read the one of a cluster. */
function addAudit(program: Command, io: CliIo, finish: SetExitCode): void {
  const run = async (options: AuditOptions): Promise<void> => {
    const { audit } = await import('./audit/audit.ts');
    const { readingState } = await import('./state/state-folder.ts');
    finish(await readingState(options.state, () => audit(options, io)));
  };
  const command = program.command('audit');
  // The records of a whole cluster have no form of their own, so the plug-in prints the help with the two subcommands.
  if (isPlugin(io)) command.description('verify the provenance chain of the cluster');
  else addRecords(command).action(run);
  const onCluster = async (options: ClusterOptions & AuditOptions): Promise<void> => {
    const { clusterAudit } = await import('./cluster/audit/cluster-audit.ts');
    finish(await clusterAudit(options, io));
  };
  addClusterOptions(command.command('verify'))
    .description('verify the provenance chain of a state folder or of a cluster, and print only the result')
    .option(
      '--head <file>',
      'a head that was kept elsewhere and must lie on the chain: audit-head.jsonl of a cluster, a copy of audit/head.json of a state folder',
    )
    .option('--keys <file>', 'the only public keys to trust, a copy of keys.pem; for a cluster')
    .addOption(state())
    .addOption(output())
    .action((_, verb: Command) => {
      const options = verb.optsWithGlobals<ClusterOptions & AuditOptions>();
      return selectsCluster(options, io) ? onCluster(options) : run({ ...options, view: 'verdict' });
    });
  addClusterOptions(command.command('show <tool>'))
    .description('verify the provenance chain and print the life of one tool, a name or a digest')
    .addOption(state())
    .addOption(output())
    .action((tool: string, _, verb: Command) => {
      const options = { ...verb.optsWithGlobals<ClusterOptions & AuditOptions>(), tool };
      return selectsCluster(options, io) ? onCluster(options) : run({ ...options, view: 'life' });
    });
}

/** Adds the options for printing the records of a state folder. */
function addRecords(command: Command): Command {
  return command
    .description('verify the provenance chain and print its records')
    .option('--subject <text>', 'only records of this tool or session: a name, a digest or an id')
    .option(
      '--adopt',
      'take over a state folder that another user, another machine or an earlier version wrote; its tools become inactive',
    )
    .option('--with-tools', 'with --adopt: trust its forged tools and approvals too')
    .addOption(state())
    .addOption(output());
}

/** Adds the verbs for decisions: files in a state folder, Approvals on a cluster. */
function addDecisions(program: Command, io: CliIo, finish: SetExitCode): void {
  program
    .command('judges', { hidden: isPlugin(io) })
    .description('print what canaries showed about judges and reviewers')
    .option('--resume <suspension>', 'lift this suspension')
    .addOption(state())
    .addOption(output())
    .action(async (options) => {
      refusePlugin('judges', io);
      const { judges } = await import('./state/judges.ts');
      const { readingState } = await import('./state/state-folder.ts');
      finish(await readingState(options.state, () => judges(options, io)));
    });
  const decisions = [
    ['approve', 'request', 'Approve', 'approve a request of an agent or of a promotion'],
    ['deny', 'request', 'Deny', 'deny a request of an agent or of a promotion'],
    ['demote', 'tool', 'Demote', 'deactivate a forged tool in every session'],
  ] as const;
  for (const [name, argument, verb, description] of decisions) {
    addClusterOptions(program.command(`${name} <${argument}>`).description(description))
      .requiredOption('--reason <text>', 'reason; it is stored with the decision')
      .addOption(state())
      .addOption(output())
      .action(async (target: string, options) => {
        if (selectsCluster(options, io)) return finish(await decideOnCluster(verb, target, options, io));
        const { recordDecision: decide } = await import('./state/record-decision.ts');
        const { readingState } = await import('./state/state-folder.ts');
        finish(await readingState(options.state, () => decide({ ...options, verb, target }, io)));
      });
  }
}

function addReactivate(program: Command, io: CliIo, finish: SetExitCode): void {
  addClusterOptions(program.command('reactivate <tool>'))
    .description('verify a deactivated tool again, and reactivate it')
    .requiredOption('--reason <text>', 'reason; it is stored with the decision')
    .option('--agent <name>', 'agent that lost the tool; required on a cluster')
    .addOption(state())
    .addOption(output())
    .action(async (target: string, options) => {
      if (selectsCluster(options, io)) {
        const { reactivate } = await import('./cluster/decisions/reactivate.ts');
        return finish(await reactivate({ ...options, tool: target }, io));
      }
      const { recordDecision: decide } = await import('./state/record-decision.ts');
      const { readingState } = await import('./state/state-folder.ts');
      finish(await readingState(options.state, () => decide({ ...options, verb: 'Reactivate', target }, io)));
    });
}

async function decideOnCluster(
  verb: 'Approve' | 'Deny' | 'Demote',
  target: string,
  options: ClusterOptions & { reason: string; output: 'text' | 'json' },
  io: CliIo,
): Promise<number> {
  if (verb === 'Demote') {
    const { demote } = await import('./cluster/decisions/demote.ts');
    return demote({ ...options, tool: target }, io);
  }
  const { decide } = await import('./cluster/decisions/decide.ts');
  return decide({ ...options, decision: verb, request: target }, io);
}

/** The kubectl plug-in never acts on a state folder. Its help and its completion omit such verbs. */
function addManifests(program: Command, io: CliIo, finish: SetExitCode): void {
  program
    .command('init [folder]')
    .description('write a new project: an agent, its policy, a tool, a replay script, a CI workflow and editor schemas')
    .action(async (folder = '.') => {
      const { init } = await import('./init/init.ts');
      finish(await init({ folder }, io));
    });
  program
    .command('validate')
    .description('check manifests: file, line, field, rule and fix of each problem')
    .addOption(files())
    .addOption(output())
    .action(async (options) => {
      const { validate } = await import('./manifests/validate.ts');
      finish(await validate({ paths: options.filename, output: options.output }, io));
    });
}

function addDiscover(program: Command, io: CliIo, finish: SetExitCode): void {
  program
    .command('discover <query>', { hidden: isPlugin(io) })
    .description('print what an agent finds with discover_capabilities')
    .addOption(files())
    .option('--agent <name>', 'agent name, when the manifests contain several agents')
    .option('--namespace <name>', 'namespace of the agent, when several agents have its name')
    .option('--kind <kind>', 'only capabilities of this kind')
    .option('--category <category>', 'only capabilities of this category')
    .option('--level <level>', 'access level of the agent; default: the initial level of the policy')
    .option('--tainted', 'as for a session that contains untrusted content')
    .option('--providers <file>', 'file with model providers and discovery.embedder, for a search by meaning too')
    .option('--explain', 'also print the words, the vectors, the links and the tokens')
    .addOption(output())
    .action(async (query: string, { filename, ...options }) => {
      const { discover } = await import('./manifests/discover.ts');
      const { builtInDescriptors } = await import('../engine/built-in.ts');
      const { acceptedDescriptors, acceptedServerNames } = await import('./mcp/servers/configured-servers.ts');
      const { connectionNames, userConnections } = await import('./connections/user-connections.ts');
      const { hostCapabilities } = await import('./connections/host-capabilities.ts');
      const { serviceDescriptors } = await import('./services/service-tools.ts');
      const own = await userConnections(io);
      const connections = connectionNames(own, await acceptedServerNames(io));
      const others = [...(await serviceDescriptors(io)), ...(await acceptedDescriptors(io))];
      const taken = { connections: own, others: new Set(others.map(({ name }) => name)), token: () => undefined };
      const toolsOf = (capabilities: readonly Capability[]) => hostCapabilities(capabilities, taken).descriptors;
      const offered = { tools: [...builtInDescriptors(), ...others], connections, toolsOf };
      finish(await discover({ ...options, query, paths: filename }, offered, io));
    });
}

function addTool(tool: Command, io: CliIo, finish: SetExitCode): void {
  tool
    .command('check <files...>')
    .description('run all deterministic gates on tools, without a model')
    .addOption(output())
    .action(async (paths: string[], options) => {
      const { toolCheck } = await import('./tools/tool-check.ts');
      finish(await toolCheck({ ...options, files: paths }, io));
    });
  tool
    .command('call <file>')
    .description('check one tool and call it')
    .requiredOption('--input <json>', 'arguments: JSON, @FILE or - for standard input')
    .addOption(output())
    .action(async (file: string, options) => {
      const { toolCall } = await import('./tools/tool-call.ts');
      finish(await toolCall({ ...options, file }, io));
    });
}

function addToolAudit(tool: Command, io: CliIo, finish: SetExitCode): void {
  addClusterOptions(tool.command('audit <tool>'))
    .description(
      'give tasks to a fresh agent, with the tool and without it, and compare; on a cluster in a verifier pod',
    )
    .option('-f, --filename <path...>', 'manifest files or folders, for an audit in this process')
    .addOption(new Option('-m, --message <text>', 'a task; may be repeated').argParser(collect).makeOptionMandatory())
    .option('--agent <name>', 'the agent that has the tool; required on a cluster')
    .option('--workspace <folder>', 'folder that the fresh agent may read, with -f', '.')
    .option('--max-tokens <number>', 'tokens of all tasks together', parseCount, 200_000)
    .option('--providers <file>', 'file with model providers, with -f')
    .addOption(
      new Option('--model-script <file>', 'answer from a replay script instead of a provider').conflicts('providers'),
    )
    .addOption(state())
    .addOption(output())
    .action(async (name: string, options) => {
      const { auditToolAnywhere } = await import('./tools/audit/tool-audit.ts');
      finish(await auditToolAnywhere({ ...options, tool: name }, io));
    });
}

function addPackages(tool: Command, io: CliIo, finish: SetExitCode): void {
  addClusterOptions(tool.command('export <tool>'))
    .description('print a forged tool as a portable package, or write the files that share it through Git')
    .addOption(state())
    .addOption(new Option('--form <form>', 'file format').choices(['yaml', 'json']).default('yaml'))
    .option('--file <file>', 'write to this file instead of standard output')
    .option('--redact', 'omit the source: for review only, not importable')
    .option('--attestation <file>', 'write a signed attestation of the tool to this file')
    .addOption(
      new Option('--gitops <folder>', 'write the tool, its Approval and a page for reviewers here').conflicts([
        'file',
        'redact',
      ]),
    )
    .addOption(
      new Option('--connection <name>', 'open a pull request with these files instead').conflicts([
        'gitops',
        'file',
        'redact',
      ]),
    )
    .option('--connections <file>', 'with --connection: file with connections')
    .option('--branch <name>', 'with --connection: the branch to merge into; default: main')
    .option('--path <folder>', 'with --connection: the folder in the repository')
    .option('--approver <user>', 'the account that applies the files to the cluster')
    .addOption(output())
    .action(async (name: string, options) => {
      const { exportTool } = await import('./tools/export-tool.ts');
      finish(await exportTool({ ...options, tool: name }, io));
    });
  tool
    .command('import <file>')
    .description('check a package and store it for the next session of an agent')
    .requiredOption('--agent <name>', 'agent name')
    .option('--namespace <name>', 'namespace of the agent', 'default')
    .option('--attestation <file>', 'the attestation of the package, which must fit it')
    .option('--trusted-key <file>', 'the public key that must have signed the attestation')
    .addOption(state())
    .addOption(output())
    .action(async (file: string, options) => {
      const { toolImport } = await import('./tools/tool-import.ts');
      finish(await toolImport({ ...options, file }, io));
    });
  tool
    .command('key', { hidden: isPlugin(io) })
    .description('print the public key of your attestations')
    .action(async () => {
      refusePlugin('tool key', io);
      const { attestationKey } = await import('./tools/attestation.ts');
      finish(await attestationKey(io));
    });
}

function addModel(model: Command, io: CliIo, finish: SetExitCode): void {
  model
    .command('replay')
    .description('serve scripted conversations in the wire formats of the providers')
    .requiredOption('--script <file>', 'the replay script')
    .option('--host <address>', 'listen address', '127.0.0.1')
    .option('--port <number>', 'port; 0 picks a free one', parseCount, 0)
    .action(async (options) => {
      const { modelReplay } = await import('./models/model-replay.ts');
      finish(await modelReplay(options, io));
    });
  model
    .command('probe')
    .description('send one request and print the normalised events as JSON lines')
    .addOption(
      new Option('--type <type>', 'wire format')
        .choices(['openai', 'openai-responses', 'anthropic', 'openai-compatible'])
        .makeOptionMandatory(),
    )
    .requiredOption('--model <name>', 'model name of the provider')
    .requiredOption('-m, --message <text>', 'message text')
    .option('--base-url <url>', "base URL, when it is not the vendor's own")
    .option('--key-environment <variable>', 'environment variable with the API key')
    .option('--system <text>', 'system prompt')
    .option('--tools <file>', 'JSON file: a list of {name, description, inputSchema}')
    .option('--max-output-tokens <number>', 'maximum output tokens', parseCount)
    .option('--response-format <form>', 'json requests one JSON object')
    .action(async (options) => {
      const { modelProbe } = await import('./models/model-probe.ts');
      finish(await modelProbe(options, io));
    });
}
