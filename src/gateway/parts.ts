import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import type { BusConnection } from '../nats/connection.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Demotions } from './demotions.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';
import type { Directory, ModelCatalog, UsageReports } from './deps.ts';
import type { Library } from './discovery/library.ts';
import type { RouteModule } from './routes.ts';

/** What the parts that are added to the door are made from. */
export interface PartsContext {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: GatewayMetrics;
  bus: BusConnection;
  directory: Directory;
  demotions: Demotions;
  library: Library;
  /** `models` of the configuration file. */
  models: unknown;
}

/** Models, spend and review: what stands beside the door. */
export interface Parts extends AsyncDisposable {
  routes: readonly RouteModule[];
  catalog: ModelCatalog;
  usage: UsageReports;
}

export type OpenParts = (context: PartsContext) => Promise<Parts>;

/** A door alone: messages come and go, and no agent can think. */
export const openNoParts: OpenParts = async () => ({
  routes: [],
  catalog: { resolve: () => undefined },
  usage: { agent: notKept, policy: notKept },
  [Symbol.asyncDispose]: async () => undefined,
});

async function notKept(): Promise<never> {
  throw new TemperError('TEMPER_NOT_FOUND', 'this gateway keeps no ledger');
}
