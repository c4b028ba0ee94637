import { type ModelPipeline, type ResolvedModel, withNames } from './pipeline.ts';
import type { Model } from './port.ts';
import { DEFAULT_PRICE, type ModelPrice } from './price.ts';
import type { CircuitState } from './resilience/circuit-breaker.ts';
import {
  type ModelConfig,
  type ModelsConfig,
  type ModelsDeps,
  openProviders,
  type ProviderConfig,
  type ProviderType,
} from './providers.ts';

/** Providers, and the models that aliases such as `default/judge` refer to. */
export interface NamedModelsConfig extends ModelsConfig {
  aliases: Readonly<Record<string, string>>;
  /** Absent: no canaries. */
  judges?: JudgeSettings;
  /** How agents find capabilities. Absent: by words alone. */
  discovery?: DiscoverySettings;
}

/** How agents find capabilities beside the words of their queries. */
export interface DiscoverySettings {
  /** The `provider/model` that embeds queries and capabilities. */
  embedder: string;
  /** Where vectors are stored; absent: in the memory of each process. */
  qdrant?: QdrantSettings;
}

/** A server of Qdrant. */
export interface QdrantSettings {
  url: string;
  /** File with the API key; absent: none. */
  keyFile?: string;
  /** The beginning of the names of its collections. */
  prefix: string;
}

/** How models are supervised that judge tools. */
export interface JudgeSettings {
  /** The share of questions to a judge or reviewer that come with a canary. */
  canaryPercent: number;
  /** Ids of suspensions that a user lifted. */
  resumed: readonly string[];
}

/** The configured models, by the names that manifests use. */
export interface NamedModelSet {
  /** The model of a `provider/model` or an alias. A model without a configured provider is resolved too; its calls fail. */
  resolve: (name: string) => ResolvedModel;
  /** Calls the provider of the resolved model. Not charged. */
  pipeline: ModelPipeline;
  /** The circuits of the providers, in the order of the configuration. */
  circuits: () => CircuitState[];
  /** The model behind `embed`; undefined when no provider has one. */
  embedding: ResolvedModel | undefined;
  /** Absent: agents find capabilities by words alone. */
  discovery?: DiscoverySettings;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

/** Throws TEMPER_MANIFEST_INVALID for a provider that is configured twice or lacks its baseUrl. */
export function openModels(config: NamedModelsConfig, deps: ModelsDeps): NamedModelSet {
  const providers = withEmbedder(config);
  const embedder = providers.find(({ embeddingModel }) => embeddingModel !== undefined);
  return {
    resolve: (name) => resolveModel(config, name),
    ...openProviders({ providers }, deps),
    embedding: embedder && resolveModel(config, `${embedder.name}/${embedder.embeddingModel}`),
    ...(config.discovery === undefined ? {} : { discovery: config.discovery }),
  };
}

/** The providers; with `discovery.embedder`, only that one has an embedding model. */
function withEmbedder({ providers, discovery }: NamedModelsConfig): readonly ProviderConfig[] {
  if (discovery === undefined) return providers;
  const slash = discovery.embedder.indexOf('/');
  const [name, embeddingModel] = [discovery.embedder.slice(0, slash), discovery.embedder.slice(slash + 1)];
  return providers.map((provider) => {
    const { embeddingModel: _own, ...others } = provider;
    return provider.name === name ? { ...others, embeddingModel } : others;
  });
}

/** The models of the configuration by name, without charges. */
export function createModels(config: ModelsConfig & Partial<NamedModelsConfig>, deps: ModelsDeps): Model {
  const { pipeline, resolve } = openModels({ aliases: {}, ...config }, deps);
  return withNames(pipeline, resolve);
}

/** The only place that reads a model's name: the part before the first slash is the provider, the rest its model. */
export function resolveModel({ providers, aliases }: NamedModelsConfig, name: string): ResolvedModel {
  const id = Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name;
  const slash = id.indexOf('/');
  const [provider, model] = [id.slice(0, Math.max(0, slash)), id.slice(slash + 1)];
  const config = providers.find((candidate) => candidate.name === provider);
  const listed: Partial<ModelConfig> = config?.models?.find((candidate) => candidate.name === model) ?? {};
  const { contextWindow, inputPrice, outputPrice } = listed;
  return {
    id,
    provider,
    model,
    price: priceOf(listed, config?.type),
    ...(inputPrice === undefined || outputPrice === undefined ? { unpriced: true } : {}),
    contextTokens: contextWindow ?? DEFAULT_CONTEXT_TOKENS,
  };
}

/** What Anthropic charges for input that it keeps for five minutes, relative to other input. */
const ANTHROPIC_CACHE_CREATION = 1.25;

function priceOf(listed: Partial<ModelConfig>, type: ProviderType | undefined): ModelPrice {
  const { cachedInputPrice, inputPrice = DEFAULT_PRICE.inputPrice, outputPrice = DEFAULT_PRICE.outputPrice } = listed;
  const usual = type === 'anthropic' ? ANTHROPIC_CACHE_CREATION * inputPrice : undefined;
  const cacheCreationPrice = listed.cacheCreationPrice ?? usual;
  return {
    inputPrice,
    outputPrice,
    ...(cachedInputPrice === undefined ? {} : { cachedInputPrice }),
    ...(cacheCreationPrice === undefined ? {} : { cacheCreationPrice }),
  };
}
