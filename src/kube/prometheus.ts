import type { Registry } from 'prom-client';
import { TemperError } from '../lib/errors.ts';
import type { Metrics } from './metrics.ts';

/** The metrics of the runtime, in a registry that takes metrics of a role too. */
export function prometheusMetrics(_registry: Registry): Metrics {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
