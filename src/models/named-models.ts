import type { Model, ModelRequest, TokenUsage } from './port.ts';
import { createModels, type ModelsConfig, type ModelsDeps, modelConfigOf, priceOf } from './providers.ts';

/** Providers, and what names such as `default/judge` stand for. */
export interface NamedModels extends ModelsConfig {
  aliases: Readonly<Record<string, string>>;
}

/** The models of a place under the names manifests use. */
export interface NamedModelSet {
  model: Model;
  /** The real `provider/model` behind a name such as `default/judge`. */
  resolve: (name: string) => string;
  /** In millionths of a dollar. */
  costOf: (name: string, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => number;
  contextTokens: (name: string) => number;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

export function openModels(config: NamedModels, deps: ModelsDeps): NamedModelSet {
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
