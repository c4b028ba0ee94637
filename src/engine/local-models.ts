import type { Ledger } from '../ledger/port.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { metering } from '../models/metering.ts';
import type { NamedModelSet } from '../models/named-models.ts';
import { calledBy, compose, type ModelCaller, withNames } from '../models/pipeline.ts';
import { fallbacks } from '../models/resilience/fallback.ts';
import type { EngineModels } from './ports.ts';

export interface LocalModelsOptions extends Pick<ModelCaller, 'onCharged'> {
  ledger: Ledger;
  ids: IdGenerator;
  /** The agent whose failing calls open its own circuits only. */
  caller?: string;
}

/** The models of a process that calls the providers itself. */
export function localModels(
  { pipeline, resolve, embedding }: NamedModelSet,
  { ledger, ids, caller = 'process', onCharged }: LocalModelsOptions,
): EngineModels {
  const metered = compose(pipeline, [
    metering({ ids, embedding }),
    calledBy({ id: caller, ledger, ...(onCharged === undefined ? {} : { onCharged }) }),
  ]);
  return {
    model: withNames(metered, resolve),
    withFallbacks: (names) => withNames(compose(metered, [fallbacks(names.map(resolve))]), resolve),
    resolve: (name) => resolve(name).id,
    contextTokens: (name) => resolve(name).contextTokens,
  };
}
