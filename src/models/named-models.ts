import { type ModelPipeline, type ResolvedModel, withNames } from './pipeline.ts';
import type { Model } from './port.ts';
import { DEFAULT_PRICE } from './price.ts';
import type { CircuitState } from './resilience/circuit-breaker.ts';
import { type ModelsConfig, type ModelsDeps, openProviders } from './providers.ts';

/** Providers, and the models that aliases such as `default/judge` refer to. */
export interface NamedModelsConfig extends ModelsConfig {
  aliases: Readonly<Record<string, string>>;
  /** Absent: no canaries. */
  judges?: JudgeSettings;
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
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

/** Throws TEMPER_MANIFEST_INVALID for a provider that is configured twice or lacks its baseUrl. */
export function openModels(config: NamedModelsConfig, deps: ModelsDeps): NamedModelSet {
  const embedder = config.providers.find(({ embeddingModel }) => embeddingModel !== undefined);
  return {
    resolve: (name) => resolveModel(config, name),
    ...openProviders(config, deps),
    embedding: embedder && resolveModel(config, `${embedder.name}/${embedder.embeddingModel}`),
  };
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
  const { contextWindow, inputPrice, outputPrice } = config?.models?.find((listed) => listed.name === model) ?? {};
  return {
    id,
    provider,
    model,
    price: {
      inputPrice: inputPrice ?? DEFAULT_PRICE.inputPrice,
      outputPrice: outputPrice ?? DEFAULT_PRICE.outputPrice,
    },
    ...(inputPrice === undefined || outputPrice === undefined ? { unpriced: true } : {}),
    contextTokens: contextWindow ?? DEFAULT_CONTEXT_TOKENS,
  };
}
