import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../api/quantities.ts';
import { messageOf } from '../lib/errors.ts';
import { addClusterOptions, outputOption } from './cluster/options.ts';
import type { CliIo } from './io.ts';

type Finish = (exitCode: number) => void;

function duration(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error, 200));
  }
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('not a whole number');
  return number;
}

/** Verbs that act on a cluster alone. */
export function addClusterVerbs(program: Command, io: CliIo, finish: Finish): void {
  addSend(program, io, finish);
  addReports(program, io, finish);
  addSwitches(program, io, finish);
  addCompletion(program, io, finish);
}

function verb(program: Command, usage: string, description: string): Command {
  return addClusterOptions(program.command(usage).description(description));
}

function addSend(program: Command, io: CliIo, finish: Finish): void {
  verb(program, 'send <agent> [text]', 'say something to an agent on a cluster; - or nothing reads standard input')
    .option('--session <id>', 'go on with this session')
    .option('-f, --follow', 'show what happens until it is answered')
    .addOption(outputOption())
    .action(async (agent: string, text: string | undefined, options) => {
      const { send } = await import('./verbs/cluster/send.ts');
      finish(await send({ ...options, agent, text }, io));
    });
  verb(program, 'logs <agent>', "print the log of an agent's pod")
    .addOption(new Option('-c, --container <name>', 'which container').choices(['agent', 'sandbox']).default('agent'))
    .option('-f, --follow', 'go on until interrupted')
    .option('-p, --previous', 'of the container before it was restarted')
    .option('--tail <lines>', 'only the last ones', wholeNumber)
    .action(async (agent: string, options) => {
      const { logs } = await import('./verbs/cluster/logs.ts');
      finish(await logs({ ...options, agent }, io));
    });
}

function addReports(program: Command, io: CliIo, finish: Finish): void {
  verb(program, 'sessions <agent>', 'list the sessions of an agent')
    .addOption(outputOption())
    .action(async (agent: string, options) => {
      const { sessions } = await import('./verbs/cluster/reports.ts');
      finish(await sessions({ ...options, agent }, io));
    });
  verb(program, 'usage [agent]', 'what an agent, or every agent under a policy, has spent')
    .option('--policy <name>', 'of a TrustPolicy')
    .addOption(outputOption())
    .action(async (agent: string | undefined, options, command: Command) => {
      if ((agent === undefined) === (options.policy === undefined)) command.error('name an agent, or --policy NAME');
      const { usage } = await import('./verbs/cluster/reports.ts');
      finish(await usage({ ...options, agent }, io));
    });
  const top = program.command('top').description('live counters');
  verb(top, 'agents', 'messages and tokens of the agents of a namespace')
    .addOption(outputOption())
    .action(async (options) => {
      const { top: run } = await import('./verbs/cluster/reports.ts');
      finish(await run({ ...options, what: 'agents' }, io));
    });
  verb(top, 'tools [agent]', 'tools of the sessions that are open')
    .addOption(outputOption())
    .action(async (agent: string | undefined, options) => {
      const { top: run } = await import('./verbs/cluster/reports.ts');
      finish(await run({ ...options, what: 'tools', agent }, io));
    });
  verb(
    program,
    'deadletters [action] [id]',
    'list messages that were given up; retry ID sends one again, drop ID drops it',
  )
    .addOption(outputOption())
    .action(async (action: string | undefined, id: string | undefined, options) => {
      const { deadLetters } = await import('./verbs/cluster/dead-letters.ts');
      finish(await deadLetters({ ...options, action, id }, io));
    });
}

function addSwitches(program: Command, io: CliIo, finish: Finish): void {
  const switches = [
    ['suspend', true, 'stop an agent, or with --policy every agent under it; messages wait'],
    ['resume', false, 'start it again'],
  ] as const;
  for (const [name, isSuspended, description] of switches) {
    verb(program, `${name} [agent]`, description)
      .option('--policy <name>', 'every agent under this TrustPolicy')
      .option('--wait <duration>', 'until the agent has done it, such as 60s', duration)
      .addOption(outputOption())
      .action(async (agent: string | undefined, options) => {
        const { suspend } = await import('./verbs/cluster/suspend.ts');
        finish(await suspend({ ...options, agent, suspend: isSuspended }, io));
      });
  }
  verb(program, 'check', 'is the installation on the cluster well?')
    .option('--wait <duration>', 'until it is, such as 120s', duration)
    .addOption(outputOption())
    .action(async (options) => {
      const { check } = await import('./verbs/cluster/check.ts');
      finish(await check(options, io));
    });
}

function addCompletion(program: Command, io: CliIo, finish: Finish): void {
  program
    .command('completion')
    .description('print what a shell needs to complete commands')
    .addOption(new Option('--shell <name>', 'which shell').choices(['bash', 'zsh']).default('bash'))
    .action(async (options) => {
      const { completionScript } = await import('./verbs/complete.ts');
      finish(completionScript(options.shell, io));
    });
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => {
      const { complete } = await import('./verbs/complete.ts');
      finish(await complete(program, words, io));
    });
}
