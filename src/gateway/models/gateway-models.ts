import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { metering } from '../../models/metering.ts';
import { type JudgeSettings, type NamedModelSet, openModels } from '../../models/named-models.ts';
import { compose, type ResolvedModel } from '../../models/pipeline.ts';
import type { ModelsDeps, ProviderConfig } from '../../models/providers.ts';
import type { CircuitState } from '../../models/resilience/circuit-breaker.ts';
import type { GaugeSample } from '../../telemetry/metrics.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';
import type { ModelCatalog } from '../deps.ts';
import { HealthRecorder, type ModelHealth } from './health.ts';
import { type ModelLabels, modelMetrics } from './instrumented-models.ts';
import { parseModelConfig } from './config.ts';

/** How long the gateway reads an answer for the provider's count after the pod has gone. Longer answers are charged at their reservation. */
const MAX_UNREAD_MS = 30_000;

/** The providers of this gateway: their models by manifest name, and their health. Calls through `set.pipeline` need a caller, and are charged to it. */
export interface GatewayModels {
  set: NamedModelSet;
  health: ModelHealth;
  catalog: ModelCatalog;
  judges: JudgeSettings | undefined;
  /** Whether the configuration lists this `provider/model`. */
  isListed: (model: string) => boolean;
}

export interface GatewayModelsDeps extends Pick<ModelsDeps, 'limits' | 'retry' | 'circuit' | 'closing'> {
  clock: Clock;
  ids: IdGenerator;
  /** From 0 up to 1. */
  random: () => number;
  metrics: GatewayMetrics;
}

/**
 * `section` is `models` of the configuration file, `{providers, aliases}`; without it the gateway has no models. API keys are read from
 * files at every call, so a rotated key is used at once. Throws TEMPER_MANIFEST_INVALID with the field.
 *
 * The layers of one model call, outermost first:
 *
 *   name → ResolvedModel            `AgentModelAccess`, per call
 *   ▸ fallbacks ▸ caller            `AgentModelAccess`, per request: the agent's models and accounts
 *   ▸ metering                      here, once
 *   ▸ metrics and span ▸ health     here, once
 *   ▸ provider                      `openProviders`, once
 *   ▸ circuit ▸ retries ▸ adapter   `openProviders`, once per provider
 */
export function openGatewayModels(section: unknown, deps: GatewayModelsDeps): GatewayModels {
  const config = parseModelConfig(section);
  const { providers, aliases } = config;
  const open = openModels(config, {
    ...deps,
    limits: { maxUnreadMs: MAX_UNREAD_MS, ...deps.limits },
    environment: {},
  });
  const { resolve, embedding } = open;
  const health = new HealthRecorder(deps.clock, {
    providers: providers.map(({ name }) => name),
    aliases: Object.fromEntries(Object.keys(aliases).map((name) => [name, resolve(name).provider])),
    isOpen: (provider) => open.circuits().some((circuit) => circuit.provider === provider && circuit.isOpen),
  });
  deps.metrics.watchAll('temper_model_circuits_open', () => open.circuits().flatMap(circuitSamples));
  const listed = new Set([
    ...providers.flatMap(({ name, models = [] }) => models.map((model) => `${name}/${model.name}`)),
    ...Object.values(aliases),
    ...(embedding === undefined ? [] : [embedding.id]),
  ]);
  const labelsOf = (model: ResolvedModel | undefined) => modelLabels(providers, listed, model);
  const { clock, ids, metrics } = deps;
  return {
    set: {
      ...open,
      pipeline: compose(open.pipeline, [
        health.layer,
        modelMetrics({ clock, metrics, labelsOf, embedding }),
        metering({ ids, embedding }),
      ]),
    },
    health,
    judges: config.judges,
    isListed: (model) => listed.has(model),
    catalog: {
      resolve(name) {
        const { id, provider, contextTokens } = resolve(name);
        const isKnown = providers.some((candidate) => candidate.name === provider);
        return isKnown ? { resolved: id, contextTokens } : undefined;
      },
      hasEmbedder: open.discovery !== undefined,
    },
  };
}

function circuitSamples({ provider, isOpen, openCallers }: CircuitState): GaugeSample[] {
  return [
    { labels: { provider, scope: 'provider' }, value: isOpen ? 1 : 0 },
    { labels: { provider, scope: 'agent' }, value: openCallers },
  ];
}

/** `other` stands for names that are not in the configuration. */
function modelLabels(
  providers: readonly ProviderConfig[],
  listed: ReadonlySet<string>,
  model: ResolvedModel | undefined,
): ModelLabels {
  const isKnown = model !== undefined && providers.some(({ name }) => name === model.provider);
  return {
    provider: isKnown ? model.provider : 'other',
    model: model !== undefined && listed.has(model.id) ? model.model : 'other',
  };
}
