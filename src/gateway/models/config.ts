import { TemperError } from '../../lib/errors.ts';
import type { NamedModelsConfig } from '../../models/named-models.ts';
import { parseNamedModels } from '../../models/read-named-models.ts';

const NONE: NamedModelsConfig = { providers: [], aliases: {} };

/** Parses `models` of the configuration file, `{providers, aliases, judges}`; absent: no models. Throws TEMPER_MANIFEST_INVALID with the field. */
export function parseModelConfig(section: unknown): NamedModelsConfig {
  if (section === undefined) return NONE;
  const config = parseNamedModels('models', section);
  const index = config.providers.findIndex(({ keyEnvironment }) => keyEnvironment !== undefined);
  if (index === -1) return config;
  throw new TemperError(
    'TEMPER_MANIFEST_INVALID',
    `models: providers[${index}].keyEnvironment is not supported; the gateway reads keys from mounted files only, so set keyFile`,
  );
}
