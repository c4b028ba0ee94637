import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../telemetry/log.ts';
import { createSecrets } from '../telemetry/secrets.ts';
import type { ResourceType } from './client.ts';
import { FakeApi, type Thing } from './fake-api.testing.ts';
import { HeldClock } from './held-clock.testing.ts';
import { KeptMetrics } from './metrics.testing.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import { Store } from './store.ts';
import { createTransport } from './transport.ts';

const THINGS: ResourceType = {
  group: 'example.dev',
  version: 'v1',
  plural: 'things',
  kind: 'Thing',
  namespaced: true,
};

/** For tests: a reflector of an API server that fails on demand, with a clock that only the test moves. */
export interface Scene extends AsyncDisposable {
  readonly api: FakeApi;
  readonly clock: HeldClock;
  readonly metrics: KeptMetrics;
  readonly lines: string[];
  readonly reflector: Reflector<Thing>;
  /** Moves the clock step by step, with real time for network I/O in between, until the condition holds. */
  readonly until: (condition: () => boolean, what: string, step?: number) => Promise<void>;
}

/** The real time for network I/O at each step. */
const NETWORK_WAIT_MS = 2;
const MAX_STEPS = 5_000;

export async function aScene(more: Partial<ReflectorOptions<Thing>> = {}): Promise<Scene> {
  const api = await FakeApi.start();
  const clock = new HeldClock();
  const metrics = new KeptMetrics();
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    destination: { write: (line: string) => lines.push(line) },
    secrets: createSecrets(),
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
