import type { Clock } from '../lib/clock.ts';
import type { EngineModels } from '../engine/ports.ts';
import type { ModelRequest } from '../models/port.ts';
import { createModels, modelConfigOf, type ModelsConfig, priceOf } from '../models/providers.ts';

/** Providers, and what names such as `default/judge` stand for. */
export interface NamedModels extends ModelsConfig {
  aliases: Readonly<Record<string, string>>;
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

/** The models of this process under the names manifests use. */
export function openModels(
  config: NamedModels,
  deps: { clock: Clock; environment: Readonly<Record<string, string | undefined>> },
): EngineModels {
  const models = createModels(config, { ...deps, random: Math.random });
  const resolve = (name: string): string => config.aliases[name] ?? name;
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
