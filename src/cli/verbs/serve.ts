import { resolve } from 'node:path';
import { isTemperError } from '../../lib/errors.ts';
import { createLogger, type Logger, type LogLevel } from '../../telemetry/log.ts';
import { createSecrets } from '../../telemetry/secrets.ts';
import { type CliIo, EXIT } from '../io.ts';

/** What a role is given of the process. */
interface RoleProcess {
  /** Absolute path of the configuration file. */
  config: string;
  /** Aborted by the first SIGTERM or SIGINT. */
  signal: AbortSignal;
  readonly createLog: (level: LogLevel) => Logger;
}

/** Runs until its signal aborts and its work has ended. */
type Role = (process: RoleProcess) => Promise<void>;

/** Roles by name, each loaded when it is served and not before. */
const ROLES: Readonly<Record<string, () => Promise<Role>>> = {
  gateway: async () => {
    const { readGatewayConfig } = await import('../../gateway/config.ts');
    const { runGateway } = await import('../../gateway/gateway.ts');
    const { openModelParts } = await import('../../gateway/model-parts.ts');
    return async ({ config, signal, createLog }) => {
      const read = await readGatewayConfig(config);
      await runGateway(read, { log: createLog(read.logLevel), signal, openParts: openModelParts });
    };
  },
};

/** Serves one role in this process. Exit 0: it was told to end and did; 1: it could not start or go on. */
export async function serve({ role, config }: { role: string; config: string }, io: CliIo): Promise<number> {
  const load = ROLES[role];
  if (load === undefined) {
    io.error(`temper: TEMPER_USAGE: there is no role "${role}"; there are: ${Object.keys(ROLES).join(', ')}\n`);
    return EXIT.usage;
  }
  const destination = { write: (line: string) => io.out(line) };
  const createLog = (level: LogLevel) => createLogger({ level, destination, secrets: createSecrets() }).child({ role });
  try {
    const run = await load();
    await run({ config: resolve(io.cwd, config), signal: io.signal, createLog });
    return EXIT.ok;
  } catch (error) {
    if (!isTemperError(error)) throw error;
    createLog('error').error({ error }, 'the role ended');
    return EXIT.refused;
  }
}
