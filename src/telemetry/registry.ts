import { collectDefaultMetrics, Registry } from 'prom-client';

/** Where a role keeps its metrics; those of the process itself are in it. */
export function createRegistry(): Registry {
  const register = new Registry();
  collectDefaultMetrics({ register });
  return register;
}
