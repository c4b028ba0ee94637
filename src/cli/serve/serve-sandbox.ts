import { resolve } from 'node:path';
import { parseAgentProgram } from '../../acp/read-agent-programs.ts';
import { TemperError } from '../../lib/errors.ts';
import { invalidMember } from '../../lib/config/config-members.ts';
import { isJsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { systemClock } from '../../lib/clock.ts';
import { type SandboxRoleEnd, serveSandbox } from '../../pod/sandbox/serve.ts';
import type { PodProgram } from '../../pod/sandbox/programs.ts';
import type { LogLevel } from '../../telemetry/log.ts';
import type { CliIo } from '../io.ts';
import { roleLogger, runRole } from './role.ts';

export interface ServeSandboxOptions {
  run: string;
  workspace: string;
  agentUid: number;
  program?: string;
  programHeap: number;
  programHomes: string;
  logLevel: LogLevel;
}

/** The launcher sets it to the exit code after which it starts the role again when the agent container needs it. */
const REST_CODE = 'LAUNCHER_REST_CODE';

/** Runs the sandbox container of a pod until SIGTERM, or until it rests. */
export async function serveSandboxRole(options: ServeSandboxOptions, io: CliIo): Promise<number> {
  const log = roleLogger('sandbox', options.logLevel, io);
  const { agentUid } = options;
  const [run, workspace] = [resolve(io.cwd, options.run), resolve(io.cwd, options.workspace)];
  const restCode = io.environment[REST_CODE];
  const role: { end: SandboxRoleEnd } = { end: 'Stopped' };
  const code = await runRole(log, async () => {
    const program = podProgram(options);
    role.end = await serveSandbox({
      run,
      workspace,
      agentUid,
      program,
      environment: io.environment,
      clock: systemClock,
      log,
      signal: io.signal,
      canRest: restCode !== undefined,
    });
  });
  return role.end === 'Resting' ? Number(restCode) : code;
}

/** Throws TEMPER_MANIFEST_INVALID. */
function podProgram({ program: text, programHeap, programHomes }: ServeSandboxOptions): PodProgram | undefined {
  if (text === undefined) return undefined;
  try {
    const value = parseUntrustedJson(text);
    if (!isJsonObject(value)) throw invalidMember('the option --program', 'the value', 'must be an object');
    const program = parseAgentProgram('the option --program', 'the value', value);
    return { program: { ...program, heapMebibytes: programHeap }, homes: programHomes };
  } catch (error) {
    if (error instanceof TemperError) throw error;
    throw new TemperError('TEMPER_MANIFEST_INVALID', 'the option --program is not JSON', { cause: error });
  }
}
