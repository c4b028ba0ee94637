import { isTemperError, messageOf } from '../../lib/errors.ts';
import { createLogger, type Logger, type LogLevel } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { type CliIo, EXIT } from '../io.ts';

/** The logger of a role on a cluster: JSON lines on standard output. */
export function roleLogger(role: string, level: LogLevel, io: CliIo): Logger {
  const destination = { write: (line: string) => io.out(line) };
  return createLogger({ level, destination, secrets: createSecretRedactor() }).child({ role });
}

/** Runs a role to its end and returns the exit code. A failure is logged as one line with its error code. */
export async function runRole(log: Logger, serve: () => Promise<void>): Promise<number> {
  try {
    await serve();
    log.info({}, 'stopped');
    return EXIT.ok;
  } catch (error) {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    log.error({ code, error }, messageOf(error, 1_000));
    return code === 'TEMPER_INTERNAL' ? EXIT.defect : EXIT.refused;
  }
}
