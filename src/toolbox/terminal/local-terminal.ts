import { realpath } from 'node:fs/promises';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { ProgramResult, ProgramRunner } from '../../sandbox/terminal/port.ts';
import type { RemoteWorkspace } from '../../tools/host/remote-workspace.ts';
import { resolveFolder } from '../path-resolution.ts';
import { callerEnvironment, parseCaller } from './caller.ts';
import { grantedEnvironment } from './environment.ts';
import type { Terminal, TerminalRequest } from './port.ts';

export interface LocalTerminalOptions {
  runner: ProgramRunner;
  /** Absolute path of the workspace. */
  workspace: string;
  /** The variables that a grant can give to a program. */
  environment: Readonly<Record<string, string | undefined>>;
}

/** Runs programs on this machine. */
export function createLocalTerminal({ runner, workspace, environment }: LocalTerminalOptions): Terminal {
  return {
    async run({ folder, environment: granted, caller, ...request }, op) {
      const real = await realpath(workspace);
      const current = await resolveFolder(folder, real, [real]);
      const result = await runner.run(
        {
          ...request,
          workspace: real,
          folder: current,
          environment: { ...grantedEnvironment(granted, environment), ...callerEnvironment(caller) },
        },
        op,
      );
      return resultOf(result);
    },
  };
}

function resultOf({ exitCode, signal, ended, left, stdout, stderr }: ProgramResult): JsonObject {
  return {
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(signal === undefined ? {} : { signal }),
    ...(ended === undefined ? {} : { ended }),
    stdout: stdout.text,
    stderr: stderr.text,
    ...(stdout.omitted === 0 ? {} : { stdoutOmittedBytes: stdout.omitted }),
    ...(stderr.omitted === 0 ? {} : { stderrOmittedBytes: stderr.omitted }),
    ...(left === 0 ? {} : { killedProcesses: left }),
  };
}

/** The name under which the sandbox container of a pod runs programs for its agent container. */
export const TERMINAL_REQUEST = 'terminal';

/** Runs programs in the sandbox container. */
export function remoteTerminal(sandbox: Pick<RemoteWorkspace, 'callTool'>): Terminal {
  return {
    async run({ caller, ...request }, op) {
      const sender = caller === undefined ? {} : { caller: { ...caller } };
      const result = await sandbox.callTool(TERMINAL_REQUEST, { ...request, ...sender }, op);
      if (isJsonObject(result)) return result;
      throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', 'the sandbox container returned no result of a program');
    },
  };
}

/** A request as the agent container sent it. Throws TEMPER_TOOL_INPUT_INVALID. */
export function parseTerminalRequest(value: Json): TerminalRequest {
  const {
    program,
    args,
    folder,
    input,
    programs,
    environment,
    milliseconds,
    caller: sender,
  } = isJsonObject(value) ? value : {};
  const allowed = programs === 'any' || areTexts(programs) ? programs : undefined;
  const isComplete = typeof program === 'string' && typeof folder === 'string' && typeof milliseconds === 'number';
  const isInput = input === undefined || typeof input === 'string';
  if (!isComplete || !isInput || !areTexts(args) || !areTexts(environment) || allowed === undefined) {
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', 'the request for a program is not valid');
  }
  const caller = parseCaller(sender);
  const given = { ...(input === undefined ? {} : { input }), ...(caller === undefined ? {} : { caller }) };
  return { program, args, folder, ...given, programs: allowed, environment, milliseconds };
}

function areTexts(value: Json | undefined): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
