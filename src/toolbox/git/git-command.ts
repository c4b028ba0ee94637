import { TemperError } from '../../lib/errors.ts';
import { type JsonObject, member } from '../../lib/json.ts';
import type { CallContext, CallerContext, ToolFailureCase } from '../../tools/contract.ts';
import { programCaller } from '../terminal/caller.ts';
import type { Terminal } from '../terminal/port.ts';

/**
 * Settings that win over those of the repository, which an agent or the author of the repository chose. They start no other program;
 * where a repository names one in a way that no setting covers, such as a filter, the kernel refuses it: git may start git alone.
 */
const SETTINGS: readonly string[] = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.pager=cat',
  'core.editor=false',
  'core.sshCommand=false',
  'core.gitProxy=',
  'core.askPass=',
  'core.attributesFile=/dev/null',
  'core.excludesFile=/dev/null',
  // Programs of agents create no links; git writes their targets as text.
  'core.symlinks=false',
  'core.quotePath=true',
  'credential.helper=',
  'commit.gpgSign=false',
  'tag.gpgSign=false',
  'log.showSignature=false',
  'gpg.program=false',
  'diff.external=',
  'submodule.recurse=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'protocol.allow=never',
  'safe.directory=*',
  'color.ui=false',
  'advice.detachedHead=false',
];

export const GIT_FAILURES: readonly ToolFailureCase[] = [
  { code: 'TEMPER_TOOL_FAILED', when: 'git refuses; the message has what it printed' },
  { code: 'TEMPER_PROGRAM_NOT_FOUND', when: 'the sandbox has no git' },
  { code: 'TEMPER_PROGRAM_UNAVAILABLE', when: 'nothing confines programs here, so that none runs' },
];

const MILLISECONDS = 60_000;
const MAX_MESSAGE = 2_000;

export interface GitCommand {
  args: readonly string[];
  /** Relative to the workspace. */
  folder: string;
  input?: string;
  /** `NAME=VALUE`, which win over the usual ones. */
  settings?: readonly string[];
}

/** The whole list of arguments of git. */
function gitArguments(
  { agent, namespace }: Pick<CallerContext, 'agent' | 'namespace'>,
  args: readonly string[],
  settings: readonly string[],
): string[] {
  const identity = [`user.name=${agent}`, `user.email=${agent}@${namespace}.invalid`];
  return [
    '--no-pager',
    '--no-optional-locks',
    ...[...SETTINGS, ...identity, ...settings].flatMap((setting) => ['-c', setting]),
    ...args,
  ];
}

/** Runs git and returns what it printed. Throws TEMPER_TOOL_FAILED with its reason, and the errors of the terminal. */
export async function runGit(
  terminal: Terminal | undefined,
  caller: CallContext,
  { args, folder, input, settings = [] }: GitCommand,
): Promise<JsonObject & { text: string }> {
  if (terminal === undefined) {
    throw new TemperError('TEMPER_PROGRAM_UNAVAILABLE', 'this command has no place to run git for agents');
  }
  const request = {
    program: 'git',
    args: gitArguments(caller, args, settings),
    folder,
    programs: ['git'],
    environment: [],
    caller: programCaller(caller),
    milliseconds: MILLISECONDS,
  };
  const result = await terminal.run(input === undefined ? request : { ...request, input }, caller.op);
  const omitted = member(result, 'stdoutOmittedBytes');
  if (member(result, 'exitCode') === 0) {
    return { text: textOf(result, 'stdout'), ...(omitted === undefined ? {} : { omittedBytes: omitted }) };
  }
  const ended = textOf(result, 'ended') || textOf(result, 'signal');
  const printed = `${textOf(result, 'stderr')}${textOf(result, 'stdout')}`.trim();
  const reason = ended === '' ? printed : `it was ended (${ended})`;
  throw new TemperError('TEMPER_TOOL_FAILED', `git ${args[0] ?? ''}: ${reason.slice(0, MAX_MESSAGE)}`);
}

function textOf(result: JsonObject, name: string): string {
  const value = member(result, name);
  return typeof value === 'string' ? value : '';
}
