import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../api/quantities.ts';
import { messageOf } from '../lib/errors.ts';
import {
  addClusterOptions,
  type ClusterOptions,
  outputOption,
  selectsCluster,
  stateOption,
} from './cluster/options.ts';
import { addBreakdownOptions } from './usage/breakdown-options.ts';
import { SHELLS } from './completion/scripts.ts';
import type { CliIo } from './io.ts';

type SetExitCode = (exitCode: number) => void;

function duration(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error, 200));
  }
}

function parseCount(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('not a non-negative integer');
  return number;
}

/** Adds the verbs that act on a cluster; `sessions`, `usage`, `rate` and `trust` also act on a state folder. */
export function addClusterVerbs(program: Command, io: CliIo, finish: SetExitCode): void {
  addSend(program, io, finish);
  addReports(program, io, finish);
  addTrust(program, io, finish);
  addSwitches(program, io, finish);
  addSchedules(program, io, finish);
  addRequests(program, io, finish);
  addCompletion(program, io, finish);
}

function verb(program: Command, usage: string, description: string): Command {
  return addClusterOptions(program.command(usage).description(description));
}

function addSend(program: Command, io: CliIo, finish: SetExitCode): void {
  verb(
    program,
    'send <agent> [text]',
    'send a message to an agent on a cluster; reads standard input when the text is - or absent',
  )
    .option('--session <id>', 'continue this session')
    .option('-f, --follow', 'print events until the message is answered')
    .addOption(outputOption())
    .action(async (agent: string, text: string | undefined, options) => {
      const { send } = await import('./cluster/verbs/send.ts');
      finish(await send({ ...options, agent, text }, io));
    });
  verb(program, 'logs <agent>', "print the log of an agent's pod")
    .addOption(new Option('-c, --container <name>', 'container name').choices(['agent', 'sandbox']).default('agent'))
    .option('-f, --follow', 'stream new lines until interrupted')
    .option('-p, --previous', 'print the log of the previous container instance')
    .option('--tail <lines>', 'print only this many of the last lines', parseCount)
    .action(async (agent: string, options) => {
      const { logs } = await import('./cluster/verbs/logs.ts');
      finish(await logs({ ...options, agent }, io));
    });
}

function addReports(program: Command, io: CliIo, finish: SetExitCode): void {
  const listing = verb(program, 'sessions [agent]', 'list sessions of the state folder, or of an agent on a cluster');
  addSessionClose(listing, io, finish);
  listing
    .addOption(stateOption())
    .addOption(outputOption())
    .action(async (agent: string | undefined, options, command: Command) => {
      if (!selectsCluster(options, io)) {
        const { sessions } = await import('./state/sessions.ts');
        const { readingState } = await import('./state/state-folder.ts');
        return finish(await readingState(options.state, () => sessions({ ...options, agent }, io)));
      }
      if (agent === undefined) return command.error('name an agent');
      const { sessions } = await import('./cluster/verbs/reports.ts');
      finish(await sessions({ ...options, agent }, io));
    });
  addUsage(program, io, finish);
  const top = program.command('top').description('print live counters');
  verb(top, 'agents', 'messages and tokens per agent of a namespace')
    .addOption(outputOption())
    .action(async (options) => {
      const { top: run } = await import('./cluster/verbs/reports.ts');
      finish(await run({ ...options, kind: 'agents' }, io));
    });
  verb(top, 'tools [agent]', 'tools of open sessions')
    .addOption(outputOption())
    .action(async (agent: string | undefined, options) => {
      const { top: run } = await import('./cluster/verbs/reports.ts');
      finish(await run({ ...options, kind: 'tools', agent }, io));
    });
  verb(program, 'events', 'list the latest events of the state folder, or of a namespace of a cluster')
    .addOption(stateOption())
    .addOption(outputOption())
    .action(async (options) => {
      if (!selectsCluster(options, io)) {
        const { stateEvents } = await import('./events/state-events.ts');
        const { readingState } = await import('./state/state-folder.ts');
        return finish(await readingState(options.state, () => stateEvents(options, io)));
      }
      const { events } = await import('./cluster/events/events.ts');
      finish(await events(options, io));
    });
  verb(program, 'webhook <agent> <trigger>', 'print the path of a webhook, its Secret, and a signed request')
    .option(
      '--url <url>',
      'where requests reach the webhooks of the release, or of temper run',
      'https://hooks.example.com',
    )
    .action(async (agent: string, trigger: string, options) => {
      const { webhook } = await import('./cluster/events/webhook.ts');
      finish(await webhook({ ...options, agent, trigger }, io));
    });
  verb(program, 'deadletters [action] [id]', 'list dead letters; retry ID sends one again, drop ID deletes one')
    .addOption(outputOption())
    .action(async (action: string | undefined, id: string | undefined, options) => {
      const { deadLetters } = await import('./cluster/verbs/dead-letters.ts');
      finish(await deadLetters({ ...options, action, id }, io));
    });
}

function addUsage(program: Command, io: CliIo, finish: SetExitCode): void {
  const usage = verb(
    program,
    'usage [agent]',
    'print the usage counted in the state folder; on a cluster, of an agent or a policy',
  ).option('--policy <name>', 'name of a TrustPolicy');
  addBreakdownOptions(usage)
    .addOption(stateOption())
    .addOption(new Option('-o, --output <form>', 'output format').choices(['text', 'wide', 'json']).default('text'))
    .action(async (agent: string | undefined, options, command: Command) => {
      if (options.by !== undefined) {
        if (options.policy !== undefined) command.error('--by and --policy exclude each other');
        if (!selectsCluster(options, io)) {
          const { stateBreakdown } = await import('./usage/state-breakdown.ts');
          const { readingState } = await import('./state/state-folder.ts');
          return finish(await readingState(options.state, () => stateBreakdown({ ...options, agent }, io)));
        }
        const { clusterBreakdown } = await import('./usage/cluster-breakdown.ts');
        return finish(await clusterBreakdown({ ...options, agent }, io));
      }
      if (options.output === 'wide') command.error('-o wide needs --by');
      if (!selectsCluster(options, io)) {
        const { stateUsage } = await import('./state/usage.ts');
        const { readingState } = await import('./state/state-folder.ts');
        return finish(await readingState(options.state, () => stateUsage({ ...options, agent }, io)));
      }
      if ((agent === undefined) === (options.policy === undefined)) command.error('name an agent, or --policy NAME');
      const { usage } = await import('./cluster/verbs/reports.ts');
      finish(await usage({ ...options, agent }, io));
    });
}

function addSessionClose(sessions: Command, io: CliIo, finish: SetExitCode): void {
  verb(sessions, 'close <session>', 'close a session permanently: its history and its tools are deleted')
    .option('--agent <name>', 'agent of the session; required on a cluster')
    .option('--end-work', 'end messages that have not ended, without an answer')
    .addOption(stateOption())
    .addOption(outputOption())
    .action(async (session: string, _, command: Command) => {
      // The listing has the same options, and takes their values where they stand before the subcommand.
      const options = { ...command.optsWithGlobals<SessionCloseOptions>(), session };
      if (selectsCluster(options, io)) {
        const { closeSession } = await import('./cluster/verbs/close-session.ts');
        return finish(await closeSession(options, io));
      }
      const { closeSession } = await import('./sessions/close-session.ts');
      const { readingState } = await import('./state/state-folder.ts');
      finish(await readingState(options.state, () => closeSession(options, io)));
    });
}

type SessionCloseOptions = ClusterOptions & {
  agent?: string;
  endWork?: boolean;
  state: string;
  output: 'text' | 'json';
};

function addTrust(program: Command, io: CliIo, finish: SetExitCode): void {
  verb(
    program,
    'rate <agent> <task> <rating>',
    'rate a task of an agent from 0 to 10: a message, or the last one of a session',
  )
    .option('--category <category>', 'the tool category that the task was about')
    .addOption(stateOption())
    .addOption(outputOption())
    .action(async (agent: string, target: string, rating: string, options) => {
      const named = { ...options, agent, target, rating };
      if (selectsCluster(options, io)) {
        const { rate } = await import('./cluster/verbs/trust.ts');
        return finish(await rate(named, io));
      }
      const { stateRate } = await import('./trust/state-trust.ts');
      const { readingState } = await import('./state/state-folder.ts');
      finish(await readingState(options.state, () => stateRate(named, io)));
    });
  const trust = program.command('trust').description('explain the access level of an agent');
  verb(
    trust,
    'explain <agent>',
    'print the level, the score, what is missing for the next level, and what would lower it',
  )
    .addOption(stateOption())
    .addOption(outputOption())
    .action(async (agent: string, options) => {
      const named = { ...options, agent };
      if (selectsCluster(options, io)) {
        const { explainTrust } = await import('./cluster/verbs/trust.ts');
        return finish(await explainTrust(named, io));
      }
      const { stateTrust } = await import('./trust/state-trust.ts');
      const { readingState } = await import('./state/state-folder.ts');
      finish(await readingState(options.state, () => stateTrust(named, io)));
    });
}

function addSwitches(program: Command, io: CliIo, finish: SetExitCode): void {
  const switches = [
    ['suspend', true, 'suspend an agent, or all agents under a policy; their messages stay queued'],
    ['resume', false, 'resume a suspended agent, or all agents under a policy'],
  ] as const;
  for (const [name, isSuspended, description] of switches) {
    verb(program, `${name} [agent]`, description)
      .option('--policy <name>', 'all agents under this TrustPolicy')
      .option('--wait <duration>', 'wait until the agent has changed, such as 60s', duration)
      .addOption(outputOption())
      .action(async (agent: string | undefined, options) => {
        const { suspend } = await import('./cluster/verbs/suspend.ts');
        finish(await suspend({ ...options, agent, suspend: isSuspended }, io));
      });
  }
  verb(program, 'check', 'check the health of the installation on the cluster')
    .option('--wait <duration>', 'wait until the installation is healthy, such as 120s', duration)
    .addOption(outputOption())
    .action(async (options) => {
      const { check } = await import('./cluster/verbs/check.ts');
      finish(await check(options, io));
    });
}

function addSchedules(program: Command, io: CliIo, finish: SetExitCode): void {
  const schedule = program.command('schedule').description('list, start and pause scheduled runs on a cluster');
  const made = () => new Option('--schedule <name>', 'a schedule that the agent made, in place of that of its spec');
  verb(schedule, 'list [agent]', 'list the schedules of an agent, or of all agents of the namespace')
    .addOption(outputOption())
    .action(async (agent: string | undefined, options) => {
      const { listSchedules } = await import('./cluster/schedules/schedule-verbs.ts');
      finish(await listSchedules({ ...options, agent }, io));
    });
  verb(schedule, 'trigger <agent>', 'start a run now, beside the runs of the schedule')
    .addOption(made())
    .addOption(outputOption())
    .action(async (agent: string, options) => {
      const { triggerSchedule } = await import('./cluster/schedules/schedule-verbs.ts');
      finish(await triggerSchedule({ ...options, agent }, io));
    });
  verb(schedule, 'pause <agent>', 'start no runs until the schedule is resumed; the spec stays as it is')
    .addOption(made())
    .requiredOption('--reason <text>', 'why, for those who look at the agent')
    .addOption(outputOption())
    .action(async (agent: string, options) => {
      const { decideSchedule } = await import('./cluster/schedules/schedule-verbs.ts');
      finish(await decideSchedule({ ...options, agent, action: 'pause' }, io));
    });
  verb(schedule, 'resume <agent>', 'end a pause, and failures that stopped the schedule')
    .addOption(made())
    .addOption(outputOption())
    .action(async (agent: string, options) => {
      const { decideSchedule } = await import('./cluster/schedules/schedule-verbs.ts');
      finish(await decideSchedule({ ...options, agent, action: 'resume' }, io));
    });
}

function addRequests(program: Command, io: CliIo, finish: SetExitCode): void {
  verb(program, 'requests [name]', 'list requests for approvers on a cluster; with a name: that request and its review')
    .option('-A, --all-namespaces', 'requests of all namespaces')
    .addOption(outputOption())
    .action(async (name: string | undefined, options) => {
      if (name !== undefined) {
        const { clusterDescribe } = await import('./cluster/verbs/describe.ts');
        return finish(await clusterDescribe({ ...options, targets: ['approvalrequests', name] }, io));
      }
      const { clusterGet } = await import('./cluster/verbs/get.ts');
      finish(await clusterGet({ ...options, targets: ['approvalrequests'] }, io));
    });
}

function addCompletion(program: Command, io: CliIo, finish: SetExitCode): void {
  program
    .command('completion')
    .description('print a completion script')
    .addOption(new Option('--shell <name>', 'target shell').choices(SHELLS).default('bash'))
    .action(async (options) => {
      const { completionScript } = await import('./completion/scripts.ts');
      finish(completionScript(options.shell, io));
    });
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => {
      const { complete } = await import('./completion/complete.ts');
      finish(await complete(program, words, io));
    });
}
