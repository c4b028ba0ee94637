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

/** The dependencies of an optional module of the gateway. */
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

/** An optional module of the gateway: models, spend and review. */
export interface Parts extends AsyncDisposable {
  routes: readonly RouteModule[];
  catalog: ModelCatalog;
  usage: UsageReports;
}

export type OpenParts = (context: PartsContext) => Promise<Parts>;

/** An empty module: the gateway delivers messages, and agents have no models. */
export const openNoParts: OpenParts = async () => ({
  routes: [],
  catalog: { resolve: () => undefined },
  usage: { agent: noLedger, policy: noLedger },
  [Symbol.asyncDispose]: async () => undefined,
});

async function noLedger(): Promise<never> {
  throw new TemperError('TEMPER_NOT_FOUND', 'this gateway has no ledger');
}
