import type { Clock } from '../lib/clock.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { JetStreamConnection } from '../nats/connection/connection.ts';
import type { StorageQuota } from '../nats/residents/storage-quota.ts';
import type { NatsSessionStore } from '../nats/sessions/port.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Demotions } from './cluster/demotions.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';
import type { AgentDirectory, ModelCatalog, UsageReports } from './deps.ts';
import type { CapabilityCatalog } from './discovery/catalog.ts';
import type { RouteModule } from './http/routes.ts';
import type { GatewaySources } from './storage/sources.ts';

/** The dependencies of an optional module of the gateway. */
export interface ModuleContext {
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
  metrics: GatewayMetrics;
  bus: JetStreamConnection;
  /** Bytes that agents store in NATS. */
  storage: Pick<StorageQuota, 'of'>;
  /** The sources that agents withhold. */
  sources: GatewaySources;
  /** The sessions of one agent. */
  sessionsOf: (agentUid: string) => NatsSessionStore;
  directory: AgentDirectory;
  demotions: Demotions;
  catalog: CapabilityCatalog;
  /** The release runs an egress proxy. */
  hasEgress: boolean;
  /** `models` of the configuration file. */
  models: unknown;
}

/** An optional module of the gateway: models, spend and review. */
export interface GatewayModule extends AsyncDisposable {
  routes: readonly RouteModule[];
  catalog: ModelCatalog;
  usage: UsageReports;
}

export type OpenModule = (context: ModuleContext) => Promise<GatewayModule>;
