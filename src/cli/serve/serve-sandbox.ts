import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { serveSandbox } from '../../pod/sandbox/serve.ts';
import type { LogLevel } from '../../telemetry/log.ts';
import type { CliIo } from '../io.ts';
import { roleLogger, runRole } from './role.ts';

export interface ServeSandboxOptions {
  run: string;
  workspace: string;
  agentUid: number;
  logLevel: LogLevel;
}

/** Runs the sandbox container of a pod until SIGTERM. */
export function serveSandboxRole(options: ServeSandboxOptions, io: CliIo): Promise<number> {
  const log = roleLogger('sandbox', options.logLevel, io);
  const { agentUid } = options;
  const [run, workspace] = [resolve(io.cwd, options.run), resolve(io.cwd, options.workspace)];
  return runRole(log, () => serveSandbox({ run, workspace, agentUid, clock: systemClock, log, signal: io.signal }));
}
