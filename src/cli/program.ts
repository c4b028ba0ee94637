import { Command, InvalidArgumentError, Option } from 'commander';
import type { CliIo } from './io.ts';

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
  const program = new Command('temper')
    .description('Agents that make their own tools, and a house that makes sure of them.')
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.error(text) })
    .showHelpAfterError('(see temper help)');
  addRun(program, io, finish);
  addState(program, io, finish);
  addManifests(program, io, finish);
  addTool(program.command('tool').description('check, call and carry tools'), io, finish);
  addModel(program.command('model').description('speak to models'), io, finish);
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
  program
    .command('get <kind> [name]')
    .description('list what the state folder holds: agents, policies, tools, requests, approvals, sessions, rejected')
    .addOption(state())
    .addOption(output())
    .action(async (kind: string, name: string | undefined, options) => {
      const { get } = await import('./verbs/get.ts');
      finish(await get({ ...options, kind, name }, io));
    });
  program
    .command('describe <kind> <name>')
    .description('show one object whole')
    .addOption(state())
    .addOption(output())
    .action(async (kind: string, name: string, options) => {
      const { describe } = await import('./verbs/describe.ts');
      finish(await describe({ ...options, kind, name }, io));
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
        const { decide } = await import('./verbs/decide.ts');
        finish(await decide({ ...options, verb, target }, io));
      });
  }
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

function addModel(model: Command, io: CliIo, finish: Finish): void {
  model
    .command('replay')
    .description('serve scripted conversations over the wire formats of the providers')
    .requiredOption('--script <file>', 'the replay script')
    .option('--port <number>', 'port on 127.0.0.1; 0 picks one', wholeNumber, 0)
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
