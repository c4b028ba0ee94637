import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import type { Decider } from '../../policy/types.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import { optionalNumber, optionalText, requiredText } from '../input.ts';
import { programCaller } from './caller.ts';
import type { Terminal } from './port.ts';

export interface ShellExecDeps {
  /** Absent where no program can run. */
  terminal?: Terminal | undefined;
  /** The programs that the policy of the caller permits. */
  programs(this: void, caller: CallerContext): Decider['programs'];
  /** `spec.grants.environment` of the caller. */
  environment(this: void, caller: CallerContext): readonly string[];
}

const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 600;
const MAX_ARGUMENTS = 256;
const MAX_ARGUMENT = 16_384;
const MAX_INPUT = 262_144;

export const SHELL_EXEC_TOOL: ToolDescriptor = {
  name: 'shell_exec',
  description:
    'Run one program with a list of arguments in the workspace. No shell: pipes, redirections, variables and wildcards are plain text. No network, and no files outside the workspace. Returns {exitCode or signal, stdout, stderr}.',
  inputSchema: {
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The name of the program, such as git', minLength: 1, maxLength: 64 },
      args: {
        type: 'array',
        items: { type: 'string', maxLength: MAX_ARGUMENT },
        maxItems: MAX_ARGUMENTS,
        description: 'Its arguments, one item each',
      },
      cwd: { type: 'string', description: 'Folder, relative to the workspace', maxLength: 4096 },
      stdin: { type: 'string', description: 'Its standard input; empty when absent', maxLength: MAX_INPUT },
      timeoutSeconds: { type: 'integer', minimum: 1, maximum: MAX_SECONDS, description: `Default ${DEFAULT_SECONDS}` },
    },
    required: ['command'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      exitCode: { type: 'integer' },
      signal: { type: 'string' },
      ended: { type: 'string', enum: ['Timeout', 'Memory', 'Output'] },
      stdout: { type: 'string' },
      stderr: { type: 'string' },
      stdoutOmittedBytes: { type: 'integer' },
      stderrOmittedBytes: { type: 'integer' },
      killedProcesses: { type: 'integer' },
    },
    required: ['stdout', 'stderr'],
    additionalProperties: false,
  },
  category: 'terminal',
  action: 'code:write',
  sideEffects: true,
  locality: 'Local',
  examples: [{ command: 'sort', args: ['--unique', 'names.txt'], cwd: 'reports' }],
  failures: [
    { code: 'TEMPER_PROGRAM_NOT_FOUND', when: 'the sandbox has no such program' },
    { code: 'TEMPER_PROGRAM_UNAVAILABLE', when: 'nothing confines programs here, so that none runs' },
  ],
};

/** Runs one program. The policy has decided about the whole command line before this call. */
export function shellExecTool({ terminal, programs, environment }: ShellExecDeps): Tool {
  return checkedTool({
    descriptor: SHELL_EXEC_TOOL,
    check: (input) => void argumentsOf(input),
    async call(input, context) {
      if (terminal === undefined) {
        throw new TemperError('TEMPER_PROGRAM_UNAVAILABLE', 'this command has no place to run programs of agents');
      }
      const text = optionalText(input, 'stdin');
      const request = {
        program: requiredText(input, 'command'),
        args: argumentsOf(input),
        folder: optionalText(input, 'cwd') ?? '.',
        ...(text === undefined ? {} : { input: text }),
        programs: namesOf(programs(context)),
        environment: [...environment(context)],
        caller: programCaller(context),
        milliseconds: (optionalNumber(input, 'timeoutSeconds') ?? DEFAULT_SECONDS) * 1_000,
      };
      return terminal.run(request, context.op);
    },
  });
}

function argumentsOf(input: Json): string[] {
  const args = member(input, 'args') ?? [];
  if (!Array.isArray(args)) return [];
  return args.map((word) => {
    if (typeof word !== 'string' || word.includes('\0')) {
      throw new TemperError('TEMPER_TOOL_INPUT_INVALID', '"args" must be texts without a NUL character');
    }
    return word;
  });
}

function namesOf(programs: Decider['programs']): string[] | 'any' {
  return programs === 'any' ? 'any' : [...programs];
}
