import { loadClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { createTransport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ChildRequests, type ChildRequestSource } from '../../../src/operator/children/child-requests.ts';
import { natsChildRequests } from '../../../src/operator/nats/sources/child-request-source.ts';
import { type StoredPolicy, TYPES } from '../../../src/operator/kube/types.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { NO_METRICS } from '../stubs.ts';
import type { GatewayFixture } from './gateway-fixture.ts';

/** The part of an operator that handles requests about child agents, on the servers of a fixture. */
export interface ChildOperator extends AsyncDisposable {
  /** One round of a leader that has just started. `source` replaces members of the port to NATS. */
  round(source?: Partial<ChildRequestSource>): Promise<void>;
  /** Handles requests as they arrive, until the operator is disposed. */
  start(): void;
  /** The same, by operators that each end before they have recorded the first end of a request: the next one repeats the request. */
  startWithCrashes(): void;
}

export async function openChildOperator(fixture: GatewayFixture, namespace: string): Promise<ChildOperator> {
  await using opening = new AsyncDisposableStack();
  const bus = await fixture.nats.connect('operator');
  const access = await loadClusterAccess({ kind: 'file', path: fixture.plane.kubeconfig }, systemClock);
  const transport = opening.use(createTransport({ access, clock: systemClock, metrics: NO_METRICS }));
  const client = createKubeClient(transport);
  const stopping = new AbortController();
  const { signal } = stopping;
  const log = createLogger({
    level: 'error',
    destination: { write: () => undefined },
    secrets: createSecretRedactor(),
  });
  const source = natsChildRequests({ current: () => bus, waitForConnection: async () => bus });
  const events = {
    record: () => undefined,
    written: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const round = async (replaced: Partial<ChildRequestSource> = {}): Promise<void> => {
    const found = await client.list<StoredPolicy>(TYPES.trustPolicies, { namespace }, signal);
    const policies = {
      get: (_namespace: string, name: string) => found.find(({ metadata }) => metadata.name === name),
    };
    const deps = { source: { ...source, ...replaced }, policies, client, events, log };
    await new ChildRequests(deps).round(signal);
  };
  const handle = (work: () => Promise<void>): void => {
    running = (async () => {
      for await (const _ of source.arrivals(signal)) await work().catch(() => undefined);
    })();
  };
  const crashed = new Set<string>();
  const end: ChildRequestSource['end'] = async (request, how) => {
    if (crashed.has(request.id)) return source.end(request, how);
    crashed.add(request.id);
    throw new Error('the operator stopped');
  };
  let running: Promise<void> | undefined;
  opening.defer(async () => {
    stopping.abort();
    await running;
  });
  const stack = opening.move();
  return {
    round,
    start: () => handle(() => round()),
    startWithCrashes: () => handle(() => round({ end }).catch(() => round({ end }))),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
