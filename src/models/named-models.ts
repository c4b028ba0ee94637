import type { Model, ModelRequest, TokenUsage } from './port.ts';
import { createModels, type ModelsConfig, type ModelsDeps, modelConfigOf, priceOf } from './providers.ts';

/** Providers, and the models that aliases such as `default/judge` refer to. */
export interface NamedModelsConfig extends ModelsConfig {
  aliases: Readonly<Record<string, string>>;
}

/** The configured models under the names that manifests use. */
export interface NamedModelSet {
  model: Model;
  /** The `provider/model` of an alias such as `default/judge`; other names are returned unchanged. */
  resolve: (name: string) => string;
  /** Cost in millionths of a US dollar. */
  costOf: (name: string, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => number;
  /** Context window in tokens; 128,000 for a model without a configured one. */
  contextTokens: (name: string) => number;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

export function openModels(config: NamedModelsConfig, deps: ModelsDeps): NamedModelSet {
  const models = createModels(config, deps);
  const resolve = (name: string): string =>
    Object.hasOwn(config.aliases, name) ? (config.aliases[name] ?? name) : name;
  return {
    resolve,
    model: {
      stream: (request: ModelRequest, op) => models.stream({ ...request, model: resolve(request.model) }, op),
      embed: (texts, op) => models.embed(texts, op),
    },
    costOf: (name, usage) => priceOf(config, resolve(name), usage),
    contextTokens: (name) => modelConfigOf(config, resolve(name))?.contextWindow ?? DEFAULT_CONTEXT_TOKENS,
  };
}
