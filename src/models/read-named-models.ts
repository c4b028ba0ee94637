import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { JudgeSettings, NamedModelsConfig } from './named-models.ts';
import type { ModelConfig, ProviderConfig, ProviderType } from './providers.ts';

const TYPES: readonly ProviderType[] = ['openai', 'openai-responses', 'anthropic', 'openai-compatible'];
const TEXT_MEMBERS = ['baseUrl', 'keyFile', 'keyEnvironment', 'embeddingModel'] as const;

/** Parses `{providers, aliases, judges}`; errors contain `file`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseNamedModels(file: string, value: unknown): NamedModelsConfig {
  if (!isJsonObject(value)) throw invalid(file, 'the value', 'must be an object with providers and aliases');
  assertKnown(file, '', value, ['providers', 'aliases', 'judges']);
  const { providers, aliases = {}, judges } = value;
  if (!Array.isArray(providers) || providers.length === 0)
    throw invalid(file, 'providers', 'must be a list with at least one entry');
  if (!isJsonObject(aliases)) throw invalid(file, 'aliases', 'must map names to models');
  return {
    providers: providers.map((provider, index) => readProvider(file, `providers[${index}]`, provider)),
    aliases: Object.fromEntries(
      Object.entries(aliases).map(([name, model]) => [name, text(file, `aliases.${name}`, model)]),
    ),
    ...(judges === undefined ? {} : { judges: readJudges(file, judges) }),
  };
}

function readJudges(file: string, value: Json): JudgeSettings {
  if (!isJsonObject(value)) throw invalid(file, 'judges', 'must be an object');
  assertKnown(file, 'judges.', value, ['canaryPercent', 'resumed']);
  const { canaryPercent = 0, resumed = [] } = value;
  if (typeof canaryPercent !== 'number' || canaryPercent < 0 || canaryPercent > 100)
    throw invalid(file, 'judges.canaryPercent', 'must be a number from 0 to 100');
  if (!Array.isArray(resumed)) throw invalid(file, 'judges.resumed', 'must be a list of ids of suspensions');
  return { canaryPercent, resumed: resumed.map((id, index) => text(file, `judges.resumed[${index}]`, id)) };
}

function readProvider(file: string, field: string, value: Json): ProviderConfig {
  if (!isJsonObject(value)) throw invalid(file, field, 'must be an object');
  assertKnown(file, `${field}.`, value, ['name', 'type', 'models', ...TEXT_MEMBERS]);
  const type = TYPES.find((known) => known === value['type']);
  if (type === undefined) throw invalid(file, `${field}.type`, `must be one of ${TYPES.join(', ')}`);
  const provider: ProviderConfig = { name: text(file, `${field}.name`, value['name']), type };
  for (const key of TEXT_MEMBERS)
    if (value[key] !== undefined) provider[key] = text(file, `${field}.${key}`, value[key]);
  const { models } = value;
  if (models === undefined) return provider;
  if (!Array.isArray(models)) throw invalid(file, `${field}.models`, 'must be a list');
  return { ...provider, models: models.map((model, index) => readModel(file, `${field}.models[${index}]`, model)) };
}

function readModel(file: string, field: string, value: Json): ModelConfig {
  if (!isJsonObject(value)) throw invalid(file, field, 'must be an object');
  const numbers = ['contextWindow', 'inputPrice', 'outputPrice'] as const;
  assertKnown(file, `${field}.`, value, ['name', ...numbers]);
  const model: ModelConfig = { name: text(file, `${field}.name`, value['name']) };
  for (const key of numbers) {
    const number = value[key];
    if (number === undefined) continue;
    if (typeof number !== 'number' || number < 0)
      throw invalid(file, `${field}.${key}`, 'must be a number of 0 or more');
    model[key] = number;
  }
  return model;
}

function text(file: string, field: string, value: Json | undefined): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(file, field, 'must be a non-empty string');
}

function assertKnown(file: string, prefix: string, value: JsonObject, known: readonly string[]): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw invalid(file, `${prefix}${unknown}`, `is not known here; known are ${known.join(', ')}`);
}

function invalid(file: string, field: string, rule: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `${file}: ${field} ${rule}`);
}
