import { Command, InvalidArgumentError, Option } from 'commander';
import { TemperError } from '../lib/errors.ts';
import { addClusterOptions, isPlugin, namesCluster, PLUGIN } from './cluster/options.ts';
import { addClusterVerbs } from './cluster-program.ts';
import type { CliIo } from './io.ts';
import { addServe } from './serve-program.ts';

/** A verb's module, imported only when the verb is used: `--help` must not pay for the engine. */
type Finish = (exitCode: number) => void;

const collect = (value: string, earlier: string[] = []): string[] => [...earlier, value];

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('not a whole number');
  return number;
}

const output = (): Option =>
  new Option('-o, --output <form>', 'how to print').choices(['text', 'json']).default('text');
const files = (): Option => new Option('-f, --filename <path...>', 'manifest files or folders').makeOptionMandatory();
const state = (): Option => new Option('--state <folder>', 'state folder').default('.temper');

/** The command line: what can be typed, and which verb answers. */
export function createProgram(io: CliIo, finish: Finish): Command {
  const program = new Command(isPlugin(io) ? 'kubectl temper' : 'temper')
    .description('Agents that make their own tools, and a house that makes sure of them.')
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.error(text) })
    .showHelpAfterError('(see temper help)');
  addRun(program, io, finish);
  addState(program, io, finish);
  addDecisions(program, io, finish);
  addClusterVerbs(program, io, finish);
  addManifests(program, io, finish);
  addPolicy(program.command('policy').description('ask the policy'), io, finish);
  const tool = program.command('tool').description('check, call and carry tools');
  addTool(tool, io, finish);
  addPackages(tool, io, finish);
  addModel(program.command('model').description('speak to models'), io, finish);
  addServe(
    program.command('serve').description('be one part of an installation on a cluster, until told to end'),
    io,
    finish,
  );
  program
    .command('version')
    .description('print the version')
    .action(async () => {
      const { version } = await import('./verbs/version.ts');
      finish(await version(io));
    });
  return program;
}

function addRun(program: Command, io: CliIo, finish: Finish): void {
  program
    .command('run')
    .description('run an agent in this process')
    .addOption(files())
    .option('-m, --message <text>', 'what to say to the agent; - reads standard input; may be given again', collect)
    .option('--agent <name>', 'which agent, when the manifests hold several')
    .option('--session <id>', 'go on with this session')
    .option('--workspace <folder>', 'what the agent may read and write', '.')
    .option('--providers <file>', 'model providers')
    .option('--model-script <file>', 'answer from a replay script instead of a provider')
    .addOption(state())
    .addOption(new Option('-o, --output <form>', 'how to print; text on a terminal').choices(['text', 'json']))
    .action(async (options) => {
      const { run } = await import('./verbs/run.ts');
      finish(await run(options, io));
    });
}

function addState(program: Command, io: CliIo, finish: Finish): void {
  addClusterOptions(program.command('get <kind> [name]'))
    .description(
      'list agents, policies, tools, capabilities, requests, approvals; of the state folder also sessions, rejected; with a context or namespace of a cluster',
    )
    .addOption(state())
    .addOption(new Option('-o, --output <form>', 'how to print').choices(['text', 'json', 'wide']).default('text'))
    .action(async (kind: string, name: string | undefined, options) => {
      if (namesCluster(options, io)) {
        const { clusterGet } = await import('./verbs/cluster/get.ts');
        return finish(await clusterGet({ ...options, kind, name }, io));
      }
      const { get } = await import('./verbs/get.ts');
      finish(await get({ ...options, kind, name }, io));
    });
  addClusterOptions(program.command('describe <kind> <name>'))
    .description('show one object whole')
    .addOption(state())
    .addOption(output())
    .action(async (kind: string, name: string, options) => {
      if (namesCluster(options, io)) {
        const { clusterDescribe } = await import('./verbs/cluster/describe.ts');
        return finish(await clusterDescribe({ ...options, kind, name }, io));
      }
      const { describe } = await import('./verbs/describe.ts');
      finish(await describe({ ...options, kind, name }, io));
    });
}

/** What is decided in a state folder; on a cluster decisions are objects. */
function addDecisions(program: Command, io: CliIo, finish: Finish): void {
  program
    .command('audit')
    .description('verify the provenance chain and print its records')
    .option('--subject <text>', 'only records of this tool or session: a name, a digest or an id')
    .addOption(state())
    .addOption(output())
    .action(async (options) => {
      refusePlugin('audit', io);
      const { audit } = await import('./verbs/audit.ts');
      finish(await audit(options, io));
    });
  const decisions = [
    ['approve', 'Approve', 'say yes to what waits for a person'],
    ['deny', 'Deny', 'say no to what waits for a person'],
    ['demote', 'Demote', 'take a tool out, at once'],
  ] as const;
  for (const [name, verb, description] of decisions) {
    program
      .command(`${name} <target>`)
      .description(description)
      .requiredOption('--reason <text>', 'why; kept in the record')
      .addOption(state())
      .addOption(output())
      .action(async (target: string, options) => {
        refusePlugin(name, io);
        const { decide } = await import('./verbs/decide.ts');
        finish(await decide({ ...options, verb, target }, io));
      });
  }
}

/** Nobody who types `kubectl` means a folder. */
function refusePlugin(verb: string, io: CliIo): void {
  if (!isPlugin(io)) return;
  const message = `${PLUGIN} ${verb} does not act on a cluster yet; \`temper ${verb}\` acts on a state folder`;
  throw new TemperError('TEMPER_USAGE', message);
}

function addManifests(program: Command, io: CliIo, finish: Finish): void {
  program
    .command('validate')
    .description('check manifests: file, line, field, rule and fix of each problem')
    .addOption(files())
    .addOption(output())
    .action(async (options) => {
      const { validate } = await import('./verbs/validate.ts');
      finish(await validate({ paths: options.filename, output: options.output }, io));
    });
}

function addPolicy(policy: Command, io: CliIo, finish: Finish): void {
  policy
    .command('explain')
    .description('show what would be decided, and every rule passed on the way')
    .addOption(files())
    .option('--agent <name>', 'which agent, when the manifests hold several')
    .option('--tool <name>', 'may it call this tool?')
    .option('--input <json>', 'the arguments of the tool')
    .option('--category <category>', 'of a tool that is not built in')
    .option('--action <action>', 'of a tool that is not built in')
    .option('--host <host>', 'may it connect to host or host:port?')
    .option('--file <path>', 'may it read this file?')
    .option('--memory <key>', 'may it read this key?')
    .option('--write', 'write the file or key instead of reading it')
    .option('--message <agent>', 'may it send a message to this agent?')
    .option('--model <model>', 'may it use this provider/model?')
    .option('--forge <mode>', 'may it forge in mode Compose or Sandbox?')
    .option('--api <name>', 'a host function the forged tool asks for', collect)
    .option('--domain <host>', 'a host it asks for', collect)
    .option('--path <path>', 'a path it asks for', collect)
    .option('--promote <tool>', 'may this tool be promoted?')
    .option('--tier <tier>', 'to Agent or Shared')
    .option('--level <level>', "instead of the policy's initial level")
    .option('--tainted', 'untrusted content is in the session')
    .addOption(output())
    .action(async ({ filename, ...question }) => {
      const { policyExplain } = await import('./verbs/policy-explain.ts');
      const { builtInDescriptors } = await import('../engine/built-in.ts');
      finish(await policyExplain({ ...question, paths: filename }, builtInDescriptors(), io));
    });
}

function addTool(tool: Command, io: CliIo, finish: Finish): void {
  tool
    .command('check <files...>')
    .description('run every deterministic gate over tools, without a model')
    .addOption(output())
    .action(async (paths: string[], options) => {
      const { toolCheck } = await import('./verbs/tool-check.ts');
      finish(await toolCheck({ ...options, files: paths }, io));
    });
  tool
    .command('call <file>')
    .description('run one tool through the full checked path')
    .requiredOption('--input <json>', 'arguments: JSON, @FILE or - for standard input')
    .addOption(output())
    .action(async (file: string, options) => {
      const { toolCall } = await import('./verbs/tool-call.ts');
      finish(await toolCall({ ...options, file }, io));
    });
}

function addPackages(tool: Command, io: CliIo, finish: Finish): void {
  tool
    .command('export <tool>')
    .description('print a forged tool as a portable package')
    .addOption(state())
    .addOption(new Option('--form <form>', 'how to write it').choices(['yaml', 'json']).default('yaml'))
    .option('--file <file>', 'write there instead of to standard output')
    .option('--redact', 'leave the source out: reviewable, not importable')
    .action(async (name: string, options) => {
      const { toolExport } = await import('./verbs/tool-export.ts');
      finish(await toolExport({ ...options, tool: name }, io));
    });
  tool
    .command('import <file>')
    .description('check a package and leave it for the next session of an agent')
    .requiredOption('--agent <name>', 'which agent')
    .option('--namespace <name>', 'of the agent', 'default')
    .addOption(state())
    .addOption(output())
    .action(async (file: string, options) => {
      const { toolImport } = await import('./verbs/tool-import.ts');
      finish(await toolImport({ ...options, file }, io));
    });
}

function addModel(model: Command, io: CliIo, finish: Finish): void {
  model
    .command('replay')
    .description('serve scripted conversations over the wire formats of the providers')
    .requiredOption('--script <file>', 'the replay script')
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <number>', 'which port; 0 picks one', wholeNumber, 0)
    .action(async (options) => {
      const { modelReplay } = await import('./verbs/model-replay.ts');
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
    .requiredOption('--model <name>', 'the model, as the provider calls it')
    .requiredOption('-m, --message <text>', 'what to say')
    .option('--base-url <url>', 'another server than the vendor')
    .option('--key-environment <variable>', 'which variable holds the key')
    .option('--system <text>', 'system prompt')
    .option('--tools <file>', 'JSON file: a list of {name, description, inputSchema}')
    .option('--max-output-tokens <number>', 'bound of the answer', wholeNumber)
    .option('--response-format <form>', 'json asks for one JSON object')
    .action(async (options) => {
      const { modelProbe } = await import('./verbs/model-probe.ts');
      finish(await modelProbe(options, io));
    });
}
