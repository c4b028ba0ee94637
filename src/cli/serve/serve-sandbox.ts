import { resolve } from 'node:path';
import { parseAgentProgram } from '../../acp/read-agent-programs.ts';
import { TemperError } from '../../lib/errors.ts';
import { invalidMember } from '../../lib/config/config-members.ts';
import { isJsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { systemClock } from '../../lib/clock.ts';
import { serveSandbox } from '../../pod/sandbox/serve.ts';
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

/** Runs the sandbox container of a pod until SIGTERM. */
export function serveSandboxRole(options: ServeSandboxOptions, io: CliIo): Promise<number> {
  const log = roleLogger('sandbox', options.logLevel, io);
  const { agentUid } = options;
  const [run, workspace] = [resolve(io.cwd, options.run), resolve(io.cwd, options.workspace)];
  return runRole(log, async () => {
    const program = podProgram(options);
    await serveSandbox({
      run,
      workspace,
      agentUid,
      program,
      environment: io.environment,
      clock: systemClock,
      log,
      signal: io.signal,
    });
  });
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
