import { resolve } from 'node:path';
import { systemClock } from '../lib/clock.ts';
import type { NamedModels } from '../models/named-models.ts';
import type { CliIo } from './io.ts';
import { providersFromEnvironment, readProviders, replayProviders } from './providers.ts';

export interface ModelSourceOptions {
  providers?: string;
  modelScript?: string;
}

/** Which models there are, and the replay server behind them when a script answers. */
export interface ModelSource extends AsyncDisposable {
  config: NamedModels;
}

/** A script, else a providers file, else what the keys in the environment allow. */
export async function openModelSource(options: ModelSourceOptions, io: CliIo): Promise<ModelSource> {
  if (options.modelScript !== undefined) {
    const { startReplay } = await import('../models/replay/server.ts');
    const server = await startReplay({ script: resolve(io.cwd, options.modelScript), clock: systemClock });
    return { config: replayProviders(server.url), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }
  const { providers } = options;
  const config =
    providers === undefined
      ? providersFromEnvironment(io.environment)
      : await readProviders(resolve(io.cwd, providers));
  return { config, [Symbol.asyncDispose]: () => Promise.resolve() };
}
