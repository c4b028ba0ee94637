import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/telemetry/log.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';
import type { KubeClient, ResourceType } from '../../src/kube/client.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { type KubeObject, Store, keyOf } from '../../src/kube/store.ts';
import type { Transport } from '../../src/kube/transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { readyReason } from '../../test/integration/operator-world.ts';
import { type Pod, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';

const PATIENCE_MS = 120_000;
const NOBODY = new AbortController().signal;

/** An API server, as an administrator speaks to it. */
export interface Api {
  readonly client: KubeClient;
  readonly transport: Transport;
}

/** Hears of objects of one kind as they come to be what is waited for. */
export class Arrivals<T extends KubeObject> implements AsyncDisposable {
  readonly #reflector: Reflector<T>;
  readonly #waiting = new Map<string, () => void>();
  readonly #isThere: (object: T) => boolean;

  private constructor(api: Api, type: ResourceType, namespace: string, isThere: (object: T) => boolean) {
    this.#isThere = isThere;
    this.#reflector = new Reflector<T>({
      transport: api.transport,
      clock: systemClock,
      log: createLogger({ level: 'error', destination: process.stderr, secrets: createSecrets() }),
      metrics: { count() {}, gauge() {}, observe() {}, watch() {} },
      random: Math.random,
      type,
      namespace,
      store: new Store<T>(),
    });
    this.#reflector.subscribe(({ type: change, key, object }) => {
      if (change === 'deleted' || !isThere(object)) return;
      this.#waiting.get(key)?.();
      this.#waiting.delete(key);
    });
  }

  static async of<T extends KubeObject>(
    api: Api,
    type: ResourceType,
    namespace: string,
    isThere: (object: T) => boolean,
  ): Promise<Arrivals<T>> {
    const arrivals = new Arrivals(api, type, namespace, isThere);
    arrivals.#reflector.start();
    await arrivals.#reflector.synced(NOBODY);
    return arrivals;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reflector[Symbol.asyncDispose]();
  }

  /** The objects as last heard of. */
  list(): T[] {
    return this.#reflector.store.list();
  }

  /** Milliseconds from the beginning of the call that creates it until the watch told that it is there. */
  async timed(object: KubeObject, create: () => Promise<unknown>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const key = keyOf(object);
    this.#waiting.set(key, resolve);
    const patience = setTimeout(() => reject(new Error(`${key} is not ready after ${PATIENCE_MS} ms`)), PATIENCE_MS);
    const begun = performance.now();
    try {
      await Promise.all([create(), promise]);
      return performance.now() - begun;
    } finally {
      clearTimeout(patience);
    }
  }

  /** Waits until so many are there. */
  async count(wanted: number): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = this.list().filter(this.#isThere).length;
      if (found >= wanted) return;
      if (performance.now() > deadline) throw new Error(`${found} of ${wanted} came`);
      await sleep(50);
    }
  }
}

export function runningAgents(api: Api, namespace: string): Promise<Arrivals<StoredAgent>> {
  return Arrivals.of<StoredAgent>(api, TYPES.agents, namespace, (agent) => readyReason(agent) === 'Running');
}

export function readyPods(api: Api, namespace: string): Promise<Arrivals<Pod>> {
  const isReady = ({ status }: Pod) =>
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return Arrivals.of<Pod>(api, TYPES.pods, namespace, (pod) => isReady(pod) === true);
}

/** Milliseconds of each and of all. */
export interface Times {
  readonly each: number[];
  readonly all: number;
}

/** So many at a time: where one arrives the next one begins. */
export async function inFlight(count: number, atOnce: number, one: (index: number) => Promise<number>): Promise<Times> {
  const begun = performance.now();
  const each: number[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      each.push(await one(index));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return { each, all: performance.now() - begun };
}

/** So many a second, whatever became of those before. */
export async function atRate(
  count: number,
  perSecond: number,
  one: (index: number) => Promise<number>,
): Promise<Times> {
  const begun = performance.now();
  const running: Promise<number>[] = [];
  for (let index = 0; index < count; index += 1) {
    await sleep(Math.max(0, begun + (index * 1_000) / perSecond - performance.now()));
    running.push(one(index));
  }
  const each = await Promise.all(running);
  return { each, all: performance.now() - begun };
}

/** Creates an Agent and waits until it runs; milliseconds. */
export function createAgent(
  { client }: Api,
  running: Arrivals<StoredAgent>,
  namespace: string,
  name: string,
  spec: object = {},
): Promise<number> {
  const agent = {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: { name, namespace },
    spec: {
      trustPolicyRef: { name: 'standard' },
      model: { primary: 'openai/gpt-4o-mini' },
      prompt: { system: 'You answer questions about orders.' },
      ...spec,
    },
  };
  return running.timed(agent, () => client.create(TYPES.agents, agent, NOBODY));
}
