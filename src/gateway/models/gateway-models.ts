import type { Clock } from '../../lib/clock.ts';
import { openModels } from '../../models/named-models.ts';
import type { ModelsDeps } from '../../models/providers.ts';
import type { ModelCatalog } from '../deps.ts';
import type { ChargedModels } from './charged-model.ts';
import { HealthRecorder, type ModelHealth, providerOf } from './health.ts';
import type { ModelLabels } from './observed-models.ts';
import { modelSection } from './section.ts';

/** The providers of this gateway: their models under the names of manifests, and how they do. */
export interface GatewayModels {
  set: ChargedModels;
  health: ModelHealth;
  catalog: ModelCatalog;
  /** Of a real name, for metrics: what the configuration does not name is `other`. */
  labelsOf: (resolved: string) => ModelLabels;
}

export interface GatewayModelsDeps extends Pick<ModelsDeps, 'limits' | 'retry' | 'circuit'> {
  clock: Clock;
  /** From 0 up to 1. */
  random: () => number;
}

/**
 * `section`: `models` of the configuration file, `{providers, aliases}`; without it there is no model. Keys are read from files at every
 * call, so one that is renewed is used at once. Throws TEMPER_MANIFEST_INVALID naming the field.
 */
export function openGatewayModels(section: unknown, deps: GatewayModelsDeps): GatewayModels {
  const config = modelSection(section);
  const recorder = new HealthRecorder(
    deps.clock,
    config.providers.map(({ name }) => name),
    config.aliases,
  );
  const open = openModels(config, { ...deps, environment: {} });
  const observed = recorder.observe({
    stream: (request, op) => open.model.stream(request, op),
    embed: (texts, op) => open.model.embed(texts, op),
  });
  const embedder = config.providers.find(({ embeddingModel }) => embeddingModel !== undefined);
  const set: ChargedModels = {
    ...open,
    embedding: embedder === undefined ? 'none' : `${embedder.name}/${embedder.embeddingModel}`,
    // Observed under the real name: an alias has no provider.
    model: {
      ...observed,
      stream: (request, op) => observed.stream({ ...request, model: open.resolve(request.model) }, op),
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
        const known = config.providers.some((provider) => provider.name === providerOf(resolved));
        return known ? { resolved, contextTokens: open.contextTokens(name) } : undefined;
      },
    },
  };
}
