import { TemperError } from '../../lib/errors.ts';
import type { NamedModels } from '../../models/named-models.ts';
import { readNamedModels } from '../../models/read-named-models.ts';

const NONE: NamedModels = { providers: [], aliases: {} };

/** `models` of the configuration file, `{providers, aliases}`; absent there is no model. Throws TEMPER_MANIFEST_INVALID naming the field. */
export function modelSection(section: unknown): NamedModels {
  if (section === undefined) return NONE;
  const config = readNamedModels('models', section);
  const index = config.providers.findIndex(({ keyEnvironment }) => keyEnvironment !== undefined);
  if (index === -1) return config;
  throw new TemperError(
    'TEMPER_MANIFEST_INVALID',
    `models: providers[${index}].keyEnvironment has no meaning here; a gateway takes keys from mounted files only, so give a keyFile`,
  );
}
