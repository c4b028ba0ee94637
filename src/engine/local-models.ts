import type { Ledger } from '../ledger/port.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { metering } from '../models/metering.ts';
import type { NamedModelSet } from '../models/named-models.ts';
import { calledBy, compose, withNames } from '../models/pipeline.ts';
import { fallbacks } from '../models/resilience/fallback.ts';
import type { EngineModels } from './ports.ts';

/** The models of a process that calls the providers itself. `caller`: the agent whose failing calls open its own circuits only. */
export function localModels(
  { pipeline, resolve, embedding }: NamedModelSet,
  { ledger, ids, caller = 'process' }: { ledger: Ledger; ids: IdGenerator; caller?: string },
): EngineModels {
  const metered = compose(pipeline, [metering({ ids, embedding }), calledBy({ id: caller, ledger })]);
  return {
    model: withNames(metered, resolve),
    withFallbacks: (names) => withNames(compose(metered, [fallbacks(names.map(resolve))]), resolve),
    resolve: (name) => resolve(name).id,
    contextTokens: (name) => resolve(name).contextTokens,
  };
}
