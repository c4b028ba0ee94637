import type { ResourceType } from '../../../src/kube/client/kube-client.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { Reflector } from '../../../src/kube/informer/reflector.ts';
import { type KubeObject, Store } from '../../../src/kube/informer/store.ts';
import { Notifier } from '../../../src/lib/async/notifier.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { NO_METRICS } from '../stubs.ts';

const LOG = createLogger({
  level: 'silent',
  destination: { write: () => undefined },
  secrets: createSecretRedactor(),
});

/** Objects of one kind, followed by a watch: a fixture that lists them every few milliseconds takes a core from what it measures. */
export class FollowedObjects<T extends KubeObject> implements AsyncDisposable {
  readonly #store = new Store<T>();
  readonly #changes = new Notifier();
  readonly #reflector: Reflector<T>;

  constructor(transport: Transport, selection: { type: ResourceType; namespace?: string; labelSelector?: string }) {
    this.#reflector = new Reflector<T>({
      ...selection,
      transport,
      store: this.#store,
      clock: systemClock,
      log: LOG,
      metrics: NO_METRICS,
      random: Math.random,
    });
    this.#reflector.subscribe(() => this.#changes.notifyAll());
    this.#reflector.start();
  }

  list(): T[] {
    return this.#store.list();
  }

  /** Calls the observer after each change, also when several arrive at once. */
  observe(observer: () => void): void {
    this.#reflector.subscribe(observer);
  }

  /** Resolves at the next change, after the time, or when the signal aborts. */
  async changed(milliseconds: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    const sleeping = systemClock.sleep(milliseconds, ended).catch(() => undefined);
    await Promise.race([this.#changes.wait(ended), sleeping]);
    over.abort();
  }

  /** Waits for an object with something to say. */
  async until<R>(find: (objects: T[]) => R | undefined, signal: AbortSignal): Promise<R> {
    for (;;) {
      const found = find(this.list());
      if (found !== undefined) return found;
      signal.throwIfAborted();
      await this.changed(1_000, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reflector[Symbol.asyncDispose]();
  }
}
