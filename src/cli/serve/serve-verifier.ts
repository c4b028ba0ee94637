import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import { serveVerifier } from '../../pod/verifier/serve.ts';
import type { LogLevel } from '../../telemetry/log.ts';
import type { CliIo } from '../io.ts';
import { roleLogger, runRole } from './role.ts';

export interface ServeVerifierOptions {
  run: string;
  endpoints: string;
  token: string;
  logLevel: LogLevel;
}

/** Runs the verifier container of a pod until SIGTERM. */
export function serveVerifierRole(options: ServeVerifierOptions, io: CliIo): Promise<number> {
  const log = roleLogger('verifier', options.logLevel, io);
  const absolute = (path: string): string => resolve(io.cwd, path);
  return runRole(log, () =>
    serveVerifier({
      run: absolute(options.run),
      endpoints: absolute(options.endpoints),
      tokenFile: absolute(options.token),
      uid: process.getuid?.() ?? 0,
      clock: systemClock,
      ids: ulids,
      random: Math.random,
      log,
      signal: io.signal,
    }),
  );
}
