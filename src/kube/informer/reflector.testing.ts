import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { ResourceType } from '../client/kube-client.ts';
import { FakeApiServer, type Thing } from './fake-api-server.testing.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import { Store } from './store.ts';
import { createTransport } from '../client/transport.ts';

const THINGS: ResourceType = {
  group: 'example.dev',
  version: 'v1',
  plural: 'things',
  kind: 'Thing',
  namespaced: true,
};

/** For tests: a reflector of an API server that fails on demand, with a clock that only the test moves. */
export interface ReflectorFixture extends AsyncDisposable {
  readonly api: FakeApiServer;
  readonly clock: FakeClock;
  readonly metrics: RecordingMetrics;
  readonly lines: string[];
  readonly reflector: Reflector<Thing>;
  /** Moves the clock step by step, with real time for network I/O in between, until the condition holds. */
  readonly until: (condition: () => boolean, what: string, step?: number) => Promise<void>;
}

/** The real time for network I/O at each step. */
const NETWORK_WAIT_MS = 2;
const MAX_STEPS = 5_000;

export async function createReflectorFixture(more: Partial<ReflectorOptions<Thing>> = {}): Promise<ReflectorFixture> {
  const api = await FakeApiServer.start();
  const clock = new FakeClock();
  const metrics = new RecordingMetrics();
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    destination: { write: (line: string) => lines.push(line) },
    secrets: createSecretRedactor(),
  });
  const transport = createTransport({ access: api.access, clock, metrics });
  const store = new Store<Thing>({ freeze: true });
  const random = (): number => 0;
  const reflector = new Reflector<Thing>({ type: THINGS, transport, store, clock, log, metrics, random, ...more });
  return {
    api,
    clock,
    metrics,
    lines,
    reflector,
    until: async (condition, what, step = 200) => {
      for (let steps = 0; steps < MAX_STEPS; steps += 1) {
        if (condition()) return;
        await sleep(NETWORK_WAIT_MS);
        await clock.advance(step);
      }
      throw new Error(`timed out waiting for: ${what}`);
    },
    async [Symbol.asyncDispose]() {
      await reflector[Symbol.asyncDispose]();
      await transport[Symbol.asyncDispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

/** The values of the things in a store, by name. */
export function valuesOf(store: Store<Thing>): Record<string, number> {
  return Object.fromEntries(store.list().map((thing) => [thing.metadata.name, thing.spec.value]));
}
