import { assertKnownMembers, invalidMember, requiredText } from '../lib/config/config-members.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { DiscoverySettings, JudgeSettings, NamedModelsConfig, QdrantSettings } from './named-models.ts';
import type { ModelConfig, ProviderConfig, ProviderType } from './providers.ts';

const TYPES: readonly ProviderType[] = ['openai', 'openai-responses', 'anthropic', 'openai-compatible'];
const TEXT_MEMBERS = ['baseUrl', 'keyFile', 'keyEnvironment', 'embeddingModel'] as const;

/** Parses `{providers, aliases, judges, discovery}`; errors contain `file`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseNamedModels(file: string, value: unknown): NamedModelsConfig {
  if (!isJsonObject(value)) throw invalidMember(file, 'the value', 'must be an object with providers and aliases');
  assertKnownMembers(file, '', value, ['providers', 'aliases', 'judges', 'discovery']);
  const { providers, aliases = {}, judges, discovery } = value;
  if (!Array.isArray(providers) || providers.length === 0)
    throw invalidMember(file, 'providers', 'must be a list with at least one entry');
  if (!isJsonObject(aliases)) throw invalidMember(file, 'aliases', 'must map names to models');
  const read = providers.map((provider, index) => readProvider(file, `providers[${index}]`, provider));
  return {
    providers: read,
    aliases: Object.fromEntries(
      Object.entries(aliases).map(([name, model]) => [name, requiredText(file, `aliases.${name}`, model)]),
    ),
    ...(judges === undefined ? {} : { judges: readJudges(file, judges) }),
    ...(discovery === undefined ? {} : { discovery: readDiscovery(file, discovery, read) }),
  };
}

function readDiscovery(file: string, value: Json, providers: readonly ProviderConfig[]): DiscoverySettings {
  if (!isJsonObject(value)) throw invalidMember(file, 'discovery', 'must be an object');
  assertKnownMembers(file, 'discovery.', value, ['embedder', 'qdrant']);
  const embedder = requiredText(file, 'discovery.embedder', value['embedder']);
  const [name, model] = embedder.split('/', 2);
  const provider = providers.find((one) => one.name === name);
  if (provider === undefined || model === undefined || model === '')
    throw invalidMember(file, 'discovery.embedder', 'must be provider/model with the name of a configured provider');
  if (provider.type === 'anthropic')
    throw invalidMember(file, 'discovery.embedder', 'must name a provider with embeddings; type anthropic has none');
  const { qdrant } = value;
  return { embedder, ...(qdrant === undefined ? {} : { qdrant: readQdrant(file, qdrant) }) };
}

function readQdrant(file: string, value: Json): QdrantSettings {
  if (!isJsonObject(value)) throw invalidMember(file, 'discovery.qdrant', 'must be an object');
  assertKnownMembers(file, 'discovery.qdrant.', value, ['url', 'keyFile', 'prefix']);
  const url = requiredText(file, 'discovery.qdrant.url', value['url']);
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw invalidMember(file, 'discovery.qdrant.url', 'must be a URL with http or https');
  const prefix = value['prefix'] ?? 'temper';
  if (typeof prefix !== 'string' || !/^[a-z0-9-]{1,100}$/.test(prefix))
    throw invalidMember(file, 'discovery.qdrant.prefix', 'must have 1 to 100 lower-case letters, digits and hyphens');
  const { keyFile } = value;
  if (keyFile === undefined) return { url, prefix };
  return { url, prefix, keyFile: requiredText(file, 'discovery.qdrant.keyFile', keyFile) };
}

function readJudges(file: string, value: Json): JudgeSettings {
  if (!isJsonObject(value)) throw invalidMember(file, 'judges', 'must be an object');
  assertKnownMembers(file, 'judges.', value, ['canaryPercent', 'resumed']);
  const { canaryPercent = 0, resumed = [] } = value;
  if (typeof canaryPercent !== 'number' || canaryPercent < 0 || canaryPercent > 100)
    throw invalidMember(file, 'judges.canaryPercent', 'must be a number from 0 to 100');
  if (!Array.isArray(resumed)) throw invalidMember(file, 'judges.resumed', 'must be a list of ids of suspensions');
  return { canaryPercent, resumed: resumed.map((id, index) => requiredText(file, `judges.resumed[${index}]`, id)) };
}

function readProvider(file: string, field: string, value: Json): ProviderConfig {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must be an object');
  assertKnownMembers(file, `${field}.`, value, ['name', 'type', 'models', ...TEXT_MEMBERS]);
  const type = TYPES.find((known) => known === value['type']);
  if (type === undefined) throw invalidMember(file, `${field}.type`, `must be one of ${TYPES.join(', ')}`);
  const provider: ProviderConfig = { name: requiredText(file, `${field}.name`, value['name']), type };
  for (const key of TEXT_MEMBERS)
    if (value[key] !== undefined) provider[key] = requiredText(file, `${field}.${key}`, value[key]);
  const { models } = value;
  if (models === undefined) return provider;
  if (!Array.isArray(models)) throw invalidMember(file, `${field}.models`, 'must be a list');
  return { ...provider, models: models.map((model, index) => readModel(file, `${field}.models[${index}]`, model)) };
}

function readModel(file: string, field: string, value: Json): ModelConfig {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must be an object');
  const numbers = ['contextWindow', 'inputPrice', 'outputPrice', 'cachedInputPrice', 'cacheCreationPrice'] as const;
  assertKnownMembers(file, `${field}.`, value, ['name', ...numbers]);
  const model: ModelConfig = { name: requiredText(file, `${field}.name`, value['name']) };
  for (const key of numbers) {
    const number = value[key];
    if (number === undefined) continue;
    if (typeof number !== 'number' || number < 0)
      throw invalidMember(file, `${field}.${key}`, 'must be a number of 0 or more');
    model[key] = number;
  }
  return model;
}
