import type { Clock } from '../lib/clock.ts';
import type { Model, ModelRequest, TokenUsage } from '../models/port.ts';
import { createModels, modelConfigOf, type ModelsConfig, priceOf } from '../models/providers.ts';

/** Providers, and what names such as `default/judge` stand for. */
export interface NamedModels extends ModelsConfig {
  aliases: Readonly<Record<string, string>>;
}

/** The models of this process under the names manifests use. */
export interface ModelDirectory {
  model: Model;
  /** The real `provider/model` behind a name. */
  resolve(name: string): string;
  /** In millionths of a dollar. */
  costOf(name: string, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>): number;
  /** Context window in tokens; 128,000 for a model the configuration does not describe. */
  contextTokens(name: string): number;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

export function openModels(
  config: NamedModels,
  deps: { clock: Clock; environment: Readonly<Record<string, string | undefined>> },
): ModelDirectory {
  const models = createModels(config, { ...deps, random: Math.random });
  const resolve = (name: string): string => config.aliases[name] ?? name;
  return {
    resolve,
    model: {
      stream: (request: ModelRequest, op) => models.stream({ ...request, model: resolve(request.model) }, op),
      embed: (texts, op) => models.embed(texts, op),
    },
    costOf: (name, usage) => priceOf(config, resolve(name), { cachedInputTokens: 0, ...usage }),
    contextTokens: (name) => modelConfigOf(config, resolve(name))?.contextWindow ?? DEFAULT_CONTEXT_TOKENS,
  };
}
