import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import type { KubeClient, ResourceType } from '../../../src/kube/client/kube-client.ts';
import { Reflector } from '../../../src/kube/informer/reflector.ts';
import { type KubeObject, Store, keyOf } from '../../../src/kube/informer/store.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { readyReason, buildAgent } from '../../../test/support/builders.ts';
import { type Pod, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { pollValue } from '../../../test/support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../../test/support/stubs.ts';

const TIMEOUT_MS = 600_000;

/** An API server, with the rights of an administrator. */
export interface Api {
  readonly client: KubeClient;
  readonly transport: Transport;
}

/** Watches the objects of one kind and measures when they become ready. */
export class ReadyWatch<T extends KubeObject> implements AsyncDisposable {
  readonly #reflector: Reflector<T>;
  readonly #waiting = new Map<string, () => void>();
  readonly #isReady: (object: T) => boolean;

  private constructor(api: Api, type: ResourceType, namespace: string | undefined, isReady: (object: T) => boolean) {
    this.#isReady = isReady;
    this.#reflector = new Reflector<T>({
      transport: api.transport,
      clock: systemClock,
      log: createLogger({ level: 'error', destination: process.stderr, secrets: createSecretRedactor() }),
      metrics: NO_METRICS,
      random: Math.random,
      type,
      ...(namespace === undefined ? {} : { namespace }),
      store: new Store<T>(),
    });
    this.#reflector.subscribe(({ type: change, key, object }) => {
      if (change === 'deleted' || !isReady(object)) return;
      this.#waiting.get(key)?.();
      this.#waiting.delete(key);
    });
  }

  static async of<T extends KubeObject>(
    api: Api,
    type: ResourceType,
    namespace: string | undefined,
    isReady: (object: T) => boolean,
  ): Promise<ReadyWatch<T>> {
    const arrivals = new ReadyWatch(api, type, namespace, isReady);
    arrivals.#reflector.start();
    await arrivals.#reflector.synced(NEVER_ABORTED);
    return arrivals;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reflector[Symbol.asyncDispose]();
  }

  /** The objects in the watch cache. */
  list(): T[] {
    return this.#reflector.store.list();
  }

  /** Milliseconds from the start of the create request until the watch reports the object as ready. */
  async timeUntilReady(object: KubeObject, create: () => Promise<unknown>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const key = keyOf(object);
    this.#waiting.set(key, resolve);
    const timer = setTimeout(() => reject(new Error(`${key} is not ready after ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
    const start = performance.now();
    try {
      await Promise.all([create(), promise]);
      return performance.now() - start;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits until `wanted` objects are ready. */
  async waitForCount(wanted: number): Promise<void> {
    const countReady = () => this.list().filter(this.#isReady).length;
    await pollValue(`${wanted} ready objects`, countReady, (count) => count >= wanted, { timeoutMs: TIMEOUT_MS });
  }
}

/** Without `namespace` the agents of all namespaces. */
export function runningAgents(api: Api, namespace?: string): Promise<ReadyWatch<StoredAgent>> {
  return ReadyWatch.of<StoredAgent>(api, TYPES.agents, namespace, (agent) => readyReason(agent) === 'Running');
}

/** Without `namespace` the pods of all namespaces. */
export function readyPods(api: Api, namespace?: string): Promise<ReadyWatch<Pod>> {
  const isReady = ({ status }: Pod) =>
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return ReadyWatch.of<Pod>(api, TYPES.pods, namespace, (pod) => isReady(pod) === true);
}

/** Durations in milliseconds: per operation, and in total. */
export interface Times {
  readonly each: number[];
  readonly all: number;
}

/** Runs `count` operations with a fixed concurrency. */
export async function runConcurrently(
  count: number,
  concurrency: number,
  one: (index: number) => Promise<number>,
): Promise<Times> {
  const start = performance.now();
  const each: number[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      each.push(await one(index));
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, lane));
  } finally {
    // After a failure the other lanes begin nothing new.
    next = count;
  }
  return { each, all: performance.now() - start };
}

/** Starts `count` operations at a fixed rate, without waiting for earlier ones. */
export async function runAtRate(
  count: number,
  perSecond: number,
  one: (index: number) => Promise<number>,
): Promise<Times> {
  const start = performance.now();
  const running: Promise<number>[] = [];
  for (let index = 0; index < count; index += 1) {
    await sleep(Math.max(0, start + (index * 1_000) / perSecond - performance.now()));
    running.push(one(index));
  }
  const each = await Promise.all(running);
  return { each, all: performance.now() - start };
}

/** Creates an Agent, waits until it is Running and returns the milliseconds. */
export function createAgent(
  { client }: Api,
  running: ReadyWatch<StoredAgent>,
  namespace: string,
  name: string,
  spec: object = {},
): Promise<number> {
  const agent = buildAgent(namespace, name, spec);
  return running.timeUntilReady(agent, () => client.create(TYPES.agents, agent, NEVER_ABORTED));
}
