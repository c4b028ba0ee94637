import { hostname } from 'node:os';
import type { ClusterSource } from '../../kube/client/cluster-access.ts';
import type { Environment } from '../../kube/client/loaded-cluster.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import { type JetStreamConnection, connectNats } from '../../nats/connection/connection.ts';
import type { Logger } from '../../telemetry/log.ts';
import { startTracing, type Tracing } from '../../telemetry/tracing.ts';
import type { GatewayConfig } from '../config.ts';

interface ConnectDeps {
  readonly log: Logger;
  /** Ends the wait for what does not answer yet. */
  readonly signal: AbortSignal;
  readonly environment?: Environment;
  readonly version?: string;
}

export function clusterSource({ kubeconfig }: GatewayConfig, { environment = {} }: ConnectDeps): ClusterSource {
  return kubeconfig === undefined ? { kind: 'cluster', environment } : { kind: 'file', path: kubeconfig };
}

export function openTracing({ tracing }: GatewayConfig, { version = 'unknown', log }: ConnectDeps): Promise<Tracing> {
  return startTracing({
    service: 'temper-gateway',
    version,
    endpoint: tracing?.endpoint,
    sampleRatio: tracing?.ratio,
    attributes: { 'service.instance.id': hostname() },
    onExportError: (error) =>
      log.warn({ error }, 'spans could not be exported; they are dropped until the collector answers'),
  });
}

export function openNats({ nats }: GatewayConfig, { log, signal }: ConnectDeps): Promise<JetStreamConnection> {
  return connectNats({
    ...nats,
    name: 'temper-gateway',
    user: 'gateway',
    clock,
    signal,
    onRetry: (error) => log.warn({ error }, 'NATS is not reachable yet'),
  });
}
