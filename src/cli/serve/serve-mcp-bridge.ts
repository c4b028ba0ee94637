import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { parseBridgeProgram } from '../../mcp/bridge/bridge-program.ts';
import { serveBridge } from '../../mcp/bridge/serve.ts';
import { findLauncher } from '../../sandbox/terminal/program-runner.ts';
import type { LogLevel } from '../../telemetry/log.ts';
import type { CliIo } from '../io.ts';
import { roleLogger, runRole } from './role.ts';

export interface ServeMcpBridgeOptions {
  program: string;
  sessions: number;
  memory: number;
  homes: string;
  host?: string;
  port: number;
  logLevel: LogLevel;
}

/** Runs the bridge to an MCP server of the platform until SIGTERM. */
export function serveMcpBridgeRole(options: ServeMcpBridgeOptions, io: CliIo): Promise<number> {
  const log = roleLogger('mcp-bridge', options.logLevel, io);
  const { host, port, sessions, memory } = options;
  return runRole(log, () =>
    serveBridge({
      listen: { port, ...(host === undefined ? {} : { host }) },
      program: parseBridgeProgram(options.program),
      sessions,
      memoryMebibytes: memory,
      homes: resolve(io.cwd, options.homes),
      launcher: findLauncher(),
      clock: systemClock,
      log,
      signal: io.signal,
    }),
  );
}
