import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import { serveAgent } from '../../pod/agent/serve.ts';
import type { LogLevel } from '../../telemetry/log.ts';
import type { CliIo } from '../io.ts';
import { roleLogger, runRole } from './role.ts';

export interface ServeAgentOptions {
  run: string;
  workspace: string;
  endpoints: string;
  token: string;
  egressToken: string;
  /** Seconds. */
  grace: number;
  logLevel: LogLevel;
}

/** Runs the agent container of a pod until SIGTERM. */
export function serveAgentRole(options: ServeAgentOptions, io: CliIo): Promise<number> {
  const log = roleLogger('agent', options.logLevel, io);
  const absolute = (path: string): string => resolve(io.cwd, path);
  return runRole(log, () =>
    serveAgent({
      run: absolute(options.run),
      workspace: absolute(options.workspace),
      endpoints: absolute(options.endpoints),
      tokenFile: absolute(options.token),
      egressTokenFile: absolute(options.egressToken),
      uid: process.getuid?.() ?? 0,
      graceMs: options.grace * 1_000,
      clock: systemClock,
      ids: ulids,
      random: Math.random,
      log,
      signal: io.signal,
    }),
  );
}
