import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { loadClusterAccess, roleSource } from '../kube/client/cluster-access.ts';
import type { Environment } from '../kube/client/loaded-cluster.ts';
import { startHealthServer } from '../kube/health.ts';
import { METRICS } from '../kube/metrics.ts';
import { createKubeClient } from '../kube/client/http-kube-client.ts';
import { createTransport, type Transport } from '../kube/client/transport.ts';
import { PORTS } from '../api/cluster.ts';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';
import type { Logger } from '../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { DEFAULT_RELEASE } from '../nats/residents/resident.ts';
import { AccountOwner } from './nats/account-owner.ts';
import { openOperatorNats } from './nats/open.ts';
import { NatsSecrets } from './pki/nats-secrets.ts';
import { ReleaseSecrets } from './pki/release-secrets.ts';
import { OPERATOR_METRICS } from '../telemetry/temper-metrics.ts';
import type { OperatorConfig } from './config.ts';
import { createOperator } from './operator.ts';

export interface OperatorRun {
  readonly log: Logger;
  /** Starts the shutdown. */
  readonly signal: AbortSignal;
  /** Contains the address of the API server in a pod, or KUBECONFIG. */
  readonly environment: Environment;
  /** Version of the software, for the metrics. */
  readonly version: string;
}

/**
 * Runs the operator until the signal aborts. Rejects with `TEMPER_LEADERSHIP_LOST` when another process may have become leader: the
 * caller must then exit with a failure at once.
 */
export async function runOperator(config: OperatorConfig, run: OperatorRun): Promise<void> {
  const { log, signal, environment, version } = run;
  const clock = systemClock;
  const registry = createRegistry();
  const metrics = registerMetrics(registry, METRICS);
  const operatorMetrics = registerMetrics(registry, OPERATOR_METRICS);
  operatorMetrics.gauge('temper_build_info', { version, node: process.versions.node }, 1);
  const access = await loadClusterAccess(roleSource(environment), clock);
  await using transport = createTransport({ access, clock, metrics, component: 'operator' });
  // Not awaited, and its connection is not part of readiness: the NATS server needs the keys and certificates that this operator creates.
  await using nats =
    config.nats === undefined
      ? undefined
      : openOperatorNats(config.nats, { clock, log, metrics: operatorMetrics, owner: accountOwner(config, transport) });
  const identity = `${hostname()}_${randomUUID()}`;
  const deps = { transport, clock, ids: ulids, random: Math.random, log, metrics, operatorMetrics, identity };
  const manager = createOperator(config, nats === undefined ? deps : { ...deps, ...nats });
  const { host, port = PORTS.health } = config.health ?? {};
  const secrets = watchNatsSecrets(config, { transport, log, signal });
  const waitingFor = () => [...manager.unsyncedInformers(), ...(secrets?.exist === false ? ['nats-secrets'] : [])];
  await using _health = await startHealthServer({ host, port, clock, registry, notReady: waitingFor });
  await manager.run(signal);
}

/** Both replicas of the operator read; neither writes to the API server for it. */
function accountOwner({ nats, namespace, gateway }: OperatorConfig, transport: Transport): AccountOwner {
  const client = createKubeClient(transport, { isLeader: () => false });
  const release = nats?.release ?? DEFAULT_RELEASE;
  return new AccountOwner({ client, clock: systemClock, release, namespace, service: gateway.service });
}

/** Only for the NATS server of this release: the Secrets of another one exist before the pod. */
function watchNatsSecrets(
  { nats, namespace }: OperatorConfig,
  { transport, log, signal }: { transport: Transport; log: Logger; signal: AbortSignal },
): NatsSecrets | undefined {
  if (nats?.service === undefined) return undefined;
  const client = createKubeClient(transport, { isLeader: () => false });
  const watched = new NatsSecrets();
  void watched.watch({ secrets: new ReleaseSecrets(client, namespace), clock: systemClock, log }, signal);
  return watched;
}
