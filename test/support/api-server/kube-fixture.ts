import { systemClock } from '../../../src/lib/clock.ts';
import type { ResourceType } from '../../../src/kube/client/kube-client.ts';
import { type ClusterAccess, loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { RecordingMetrics } from '../../../src/kube/metrics.testing.ts';
import { createTransport, type Transport } from '../../../src/kube/client/transport.ts';
import { createLogger, type Logger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';

export const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** A transport to a real API server, with recorded metrics and log lines. */
export interface KubeFixture extends AsyncDisposable {
  readonly access: ClusterAccess;
  readonly transport: Transport;
  readonly metrics: RecordingMetrics;
  readonly log: Logger;
  readonly logLines: string[];
}

export async function openKubeFixture(kubeconfig: string): Promise<KubeFixture> {
  const access = await loadClusterAccess({ kind: 'file', path: kubeconfig }, systemClock);
  const metrics = new RecordingMetrics();
  const logLines: string[] = [];
  const destination = { write: (line: string) => logLines.push(line) };
  const log = createLogger({ level: 'info', destination, secrets: createSecretRedactor() });
  const transport = createTransport({ access, clock: systemClock, metrics });
  return { access, transport, metrics, log, logLines, [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose]() };
}
