import type { Clock } from '../../lib/clock.ts';
import { openModels } from '../../models/named-models.ts';
import type { ModelsDeps } from '../../models/providers.ts';
import type { ModelCatalog } from '../deps.ts';
import type { GatewayModelSet } from './metered-models.ts';
import { HealthRecorder, type ModelHealth, providerOf } from './health.ts';
import type { ModelLabels } from './instrumented-models.ts';
import { parseModelConfig } from './config.ts';

/** The providers of this gateway: their models by manifest name, and their health. */
export interface GatewayModels {
  set: GatewayModelSet;
  health: ModelHealth;
  catalog: ModelCatalog;
  /** Metric labels of a real model name; `other` for names that are not in the configuration. */
  labelsOf: (resolved: string) => ModelLabels;
}

export interface GatewayModelsDeps extends Pick<ModelsDeps, 'limits' | 'retry' | 'circuit'> {
  clock: Clock;
  /** From 0 up to 1. */
  random: () => number;
}

/**
 * `section` is `models` of the configuration file, `{providers, aliases}`; without it the gateway has no models. API keys are read from
 * files at every call, so a rotated key is used at once. Throws TEMPER_MANIFEST_INVALID with the field.
 *
 * The layers of one model call, outermost first. Those of the agent are built per request (`AgentModelAccess.requestedModel`), the others once:
 *
 *   withFallbacks ▸ recordFallback ▸ ledger charges      per request, only for the primary model: the first two
 *   ▸ metrics and span                                   once, in the model module
 *   ▸ alias → provider/model ▸ health recorder           once, here
 *   ▸ route ▸ circuit breaker ▸ retries ▸ adapter        once, in `openModels`
 */
export function openGatewayModels(section: unknown, deps: GatewayModelsDeps): GatewayModels {
  const config = parseModelConfig(section);
  const recorder = new HealthRecorder(
    deps.clock,
    config.providers.map(({ name }) => name),
    config.aliases,
  );
  const open = openModels(config, { ...deps, environment: {} });
  const withHealth = recorder.observe({
    stream: (request, op) => open.model.stream(request, op),
    embed: (texts, op) => open.model.embed(texts, op),
  });
  const embedder = config.providers.find(({ embeddingModel }) => embeddingModel !== undefined);
  const set: GatewayModelSet = {
    ...open,
    embedding: embedder === undefined ? 'none' : `${embedder.name}/${embedder.embeddingModel}`,
    // Resolves aliases before the health recorder: an alias has no provider.
    model: {
      ...withHealth,
      stream: (request, op) => withHealth.stream({ ...request, model: open.resolve(request.model) }, op),
    },
  };
  const named = new Set([
    ...config.providers.flatMap(({ name, models = [] }) => models.map((model) => `${name}/${model.name}`)),
    ...Object.values(config.aliases),
    set.embedding,
  ]);
  return {
    set,
    health: recorder,
    labelsOf(resolved) {
      const provider = config.providers.find(({ name }) => name === providerOf(resolved))?.name ?? 'other';
      return { provider, model: named.has(resolved) ? resolved.slice(resolved.indexOf('/') + 1) : 'other' };
    },
    catalog: {
      resolve(name) {
        const resolved = open.resolve(name);
        const isKnown = config.providers.some((provider) => provider.name === providerOf(resolved));
        return isKnown ? { resolved, contextTokens: open.contextTokens(name) } : undefined;
      },
    },
  };
}
