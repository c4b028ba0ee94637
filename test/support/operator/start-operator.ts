import type { KubeRequest, Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ulids } from '../../../src/lib/ids.ts';
import { type OperatorConfig, parseOperatorConfig } from '../../../src/operator/config.ts';
import type { OperatorDeps } from '../../../src/operator/components.ts';
import { createOperator } from '../../../src/operator/operator.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { type ApiServerFixture, RELEASE_NAMESPACE } from '../api-server/api-server-fixture.ts';
import { NO_METRICS } from '../stubs.ts';

export const OPERATOR_CONFIG: OperatorConfig = parseOperatorConfig(`
namespace: ${RELEASE_NAMESPACE}
agent:
  image: temper:test
  resources: {cpu: 100m, memory: 192Mi, ephemeralStorage: 128Mi}
sandboxClasses:
  - name: standard
    image: temper-sandbox:test
    resources: {cpu: 250m, memory: 384Mi, ephemeralStorage: 128Mi}
    workspace: 1Gi
gateway:
  service: temper-gateway
  podLabels: {app.kubernetes.io/component: gateway}
leaderElection: false
`);

/** An operator that runs in this process until `stop`, or until the test simulates its death (`die`). */
export interface RunningOperator {
  /** Shuts the operator down as SIGTERM does. */
  stop(): Promise<void>;
  /** Resolves when the operator ends: undefined, or the error it ended with. */
  readonly ended: Promise<unknown>;
}

export async function startOperator(
  apiServer: Pick<ApiServerFixture, 'connect' | 'defer'>,
  config: OperatorConfig = OPERATOR_CONFIG,
  options: Partial<OperatorDeps> & { wrap?: (transport: Transport, die: () => void) => Transport } = {},
): Promise<RunningOperator> {
  const transport = await apiServer.connect();
  const stopping = new AbortController();
  const wrapped = options.wrap?.(transport, () => stopping.abort()) ?? transport;
  const { wrap: _wrap, ...rest } = options;
  const destination = {
    write: (line: string) => (process.env['OPERATOR_LOG'] === undefined ? undefined : process.stderr.write(line)),
  };
  const manager = createOperator(config, {
    transport: wrapped,
    clock: systemClock,
    ids: ulids,
    random: Math.random,
    log: createLogger({ level: 'debug', destination, secrets: createSecretRedactor() }),
    metrics: NO_METRICS,
    identity: ulids.next('operator'),
    ...rest,
  });
  const ended = manager.run(stopping.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  const shutDown = async () => {
    stopping.abort();
    await ended;
    await transport[Symbol.asyncDispose]();
  };
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= shutDown());
  apiServer.defer(stop);
  return { ended, stop };
}

export function isWriteRequest({ method, path }: KubeRequest): boolean {
  return method !== 'GET' && !path.includes('dryRun') && !path.includes('/leases');
}

/** The writes of requests, without Events: `POST pods`, `PATCH emergenttools/status`. Sorted. */
export function writesOf(requests: readonly KubeRequest[]): string[] {
  const writes = requests.filter(isWriteRequest).flatMap(({ method, path }) => {
    const [plural = '', , subresource] =
      path
        .split('?')[0]
        ?.split(/\/namespaces\/[^/]+\//)[1]
        ?.split('/') ?? [];
    return `${method} ${subresource === undefined ? plural : `${plural}/${subresource}`}`;
  });
  return writes.filter((write) => write !== 'POST events').sort();
}

/** Appends every request to `seen`. */
export function recordingTransport(transport: Transport, seen: KubeRequest[]): Transport {
  return {
    ...transport,
    send: (request, signal) => {
      seen.push(request);
      return transport.send(request, signal);
    },
  };
}
