import { resolve } from 'node:path';
import { parse } from 'yaml';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { JudgeSettings, NamedModelsConfig } from '../../models/named-models.ts';
import { parseNamedModels } from '../../models/read-named-models.ts';
import { readInputFile } from '../input/input-files.ts';
import type { CliIo } from '../io.ts';

/** How judges are supervised, unless a providers file says otherwise. */
const JUDGES: JudgeSettings = { canaryPercent: 5, resumed: [] };

/** The author, the judge and the two reviewers must be different models: the gates reject a judge that is also the author. */
const OPENAI: NamedModelsConfig = {
  judges: JUDGES,
  providers: [{ name: 'openai', type: 'openai', keyEnvironment: 'OPENAI_API_KEY' }],
  aliases: {
    'default/default': 'openai/gpt-4o-mini',
    'default/judge': 'openai/gpt-4o',
    'default/safety': 'openai/gpt-4o',
    'default/correctness': 'openai/gpt-4.1',
  },
};
const ANTHROPIC: NamedModelsConfig = {
  judges: JUDGES,
  providers: [{ name: 'anthropic', type: 'anthropic', keyEnvironment: 'ANTHROPIC_API_KEY' }],
  aliases: {
    'default/default': 'anthropic/claude-haiku-4-5',
    'default/judge': 'anthropic/claude-sonnet-4-6',
    'default/safety': 'anthropic/claude-sonnet-4-6',
    'default/correctness': 'anthropic/claude-opus-4-6',
  },
};

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The provider whose API key is in the environment, at the URL that the variable of its official client names, if any. Throws
 * TEMPER_MODEL_UNAVAILABLE without a key, and TEMPER_USAGE for a URL that is not valid.
 */
export function providersFromEnvironment(environment: Environment): NamedModelsConfig {
  if (environment['OPENAI_API_KEY']) return withBaseUrl(OPENAI, environment, 'OPENAI_BASE_URL');
  if (environment['ANTHROPIC_API_KEY']) return withBaseUrl(ANTHROPIC, environment, 'ANTHROPIC_BASE_URL');
  throw new TemperError(
    'TEMPER_MODEL_UNAVAILABLE',
    'no model is configured: set OPENAI_API_KEY or ANTHROPIC_API_KEY, or give --providers FILE or --model-script FILE',
  );
}

/** A company proxy must receive the requests: a variable that is ignored would send them, with the key, to the vendor. */
function withBaseUrl(config: NamedModelsConfig, environment: Environment, variable: string): NamedModelsConfig {
  const baseUrl = environment[variable];
  if (!baseUrl) return config;
  if (!URL.canParse(baseUrl) || !/^https?:/i.test(baseUrl)) {
    throw new TemperError('TEMPER_USAGE', `${variable} is not the URL of a provider; write it as https://HOST/PATH`);
  }
  return { ...config, providers: config.providers.map((provider) => ({ ...provider, baseUrl })) };
}

/** Providers and aliases that all use the replay server at `url`. */
export function replayProviders(url: string): NamedModelsConfig {
  return {
    providers: [
      { name: 'replay', type: 'openai', baseUrl: `${url}/v1` },
      { name: 'openai', type: 'openai', baseUrl: `${url}/v1` },
      { name: 'anthropic', type: 'anthropic', baseUrl: url },
    ],
    aliases: {
      'default/default': 'replay/scripted',
      'default/judge': 'replay/judge',
      'default/safety': 'replay/safety',
      'default/correctness': 'replay/correctness',
    },
  };
}

/** Reads a providers file. Throws TEMPER_USAGE when it cannot be read, or TEMPER_MANIFEST_INVALID naming the line or the field. */
export async function readProviders(file: string, io: CliIo): Promise<NamedModelsConfig> {
  const text = await readInputFile(file, '--providers', io);
  const path = resolve(io.cwd, file);
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 20 });
  } catch (error) {
    throw new TemperError('TEMPER_MANIFEST_INVALID', `${printable(path)}: ${printable(messageOf(error, 300))}`, {
      cause: error,
    });
  }
  return { judges: JUDGES, ...parseNamedModels(path, value) };
}
