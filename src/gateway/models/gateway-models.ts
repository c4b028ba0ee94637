import type { Clock } from '../../lib/clock.ts';
import { openModels } from '../../models/named-models.ts';
import type { ModelsDeps } from '../../models/providers.ts';
import type { ModelCatalog } from '../deps.ts';
import type { ChargedModels } from './charged-model.ts';
import { HealthRecorder, type ModelHealth, providerOf } from './health.ts';
import { modelSection } from './section.ts';

/** The providers of this gateway: their models under the names of manifests, and how they do. */
export interface GatewayModels {
  set: ChargedModels;
  health: ModelHealth;
  catalog: ModelCatalog;
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
  return {
    set,
    health: recorder,
    catalog: {
      resolve(name) {
        const resolved = open.resolve(name);
        const known = config.providers.some((provider) => provider.name === providerOf(resolved));
        return known ? { resolved, contextTokens: open.contextTokens(name) } : undefined;
      },
    },
  };
}
