import { systemClock } from '../../lib/clock.ts';
import type { NamedModelsConfig } from '../../models/named-models.ts';
import { assertInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';
import { providersFromEnvironment, readProviders, replayProviders } from './providers.ts';

export interface ModelSourceOptions {
  providers?: string;
  modelScript?: string;
}

/** The configured models, and the replay server when a script replaces the providers. */
export interface ModelSource extends AsyncDisposable {
  config: NamedModelsConfig;
}

/** Opens a replay script, a providers file, or without both the providers of the API keys in the environment. */
export async function openModelSource(options: ModelSourceOptions, io: CliIo): Promise<ModelSource> {
  if (options.modelScript !== undefined) {
    const script = await assertInputFile(options.modelScript, '--model-script', io);
    const { startReplay } = await import('../../models/replay/server.ts');
    const server = await startReplay({ script, clock: systemClock });
    return { config: replayProviders(server.url), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }
  const { providers } = options;
  const config =
    providers === undefined ? providersFromEnvironment(io.environment) : await readProviders(providers, io);
  return { config, [Symbol.asyncDispose]: () => Promise.resolve() };
}
