import type { Logger, LogLevel } from '../../telemetry/log.ts';
import { assertInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';
import { roleLogger, runRole } from './role.ts';
import { packageVersion } from '../tracing.ts';

/** What a role receives from the process. */
interface RoleContext {
  /** Absolute path of the configuration file. */
  config: string;
  /** Aborted by the first SIGTERM or SIGINT. */
  signal: AbortSignal;
  readonly createLog: (level: LogLevel) => Logger;
  readonly environment: CliIo['environment'];
}

/** Runs until its signal aborts and its work is complete. */
type Role = (context: RoleContext) => Promise<void>;

export type ConfiguredRole = 'gateway' | 'operator' | 'egress';

/** Roles by name. Each is imported only when it is served. */
const ROLES: Readonly<Record<ConfiguredRole, () => Promise<Role>>> = {
  gateway: async () => {
    const { readGatewayConfig } = await import('../../gateway/config.ts');
    const { runGateway } = await import('../../gateway/gateway.ts');
    const { openModelModule: openModelParts } = await import('../../gateway/model-module.ts');
    return async ({ config, signal, createLog, environment }) => {
      const gatewayConfig = await readGatewayConfig(config);
      const log = createLog(gatewayConfig.logLevel);
      const version = await packageVersion();
      await runGateway(gatewayConfig, { log, signal, environment, openModule: openModelParts, version });
    };
  },
  egress: async () => {
    const { readEgressConfig } = await import('../../egress/config.ts');
    const { runEgress } = await import('../../egress/egress.ts');
    return async ({ config, signal, createLog }) => {
      const egressConfig = await readEgressConfig(config);
      await runEgress(egressConfig, { createLog, signal, version: await packageVersion() });
    };
  },
  operator: async () => {
    const { readOperatorConfig } = await import('../../operator/config.ts');
    const { runOperator } = await import('../../operator/run.ts');
    return async ({ config, signal, createLog, environment }) => {
      const operatorConfig = await readOperatorConfig(config);
      const log = createLog(operatorConfig.logLevel ?? 'info');
      await runOperator(operatorConfig, { log, signal, environment, version: await packageVersion() });
    };
  },
};

/** Runs one role in this process until SIGTERM, or until the role fails. Throws TEMPER_USAGE for a configuration that cannot be read. */
export async function serve({ role, config }: { role: ConfiguredRole; config: string }, io: CliIo): Promise<number> {
  const path = await assertInputFile(config, '--config', io);
  const createLog = (level: LogLevel): Logger => roleLogger(role, level, io);
  return runRole(createLog('info'), async () => {
    const run = await ROLES[role]();
    const { signal, environment } = io;
    await run({ config: path, signal, createLog, environment });
  });
}
