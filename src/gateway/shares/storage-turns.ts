import { onAbort } from '../../lib/async/abort.ts';
import { TemperError } from '../../lib/errors.ts';
import { CallerTurns, type JobOwner } from './caller-turns.ts';

/** Requests of one namespace that write to the storage at the same time, at one replica. */
const MAX_WRITES = 4;

interface Waiter extends JobOwner {
  place: PromiseWithResolvers<void>;
}

interface NamespaceWrites {
  active: number;
  readonly waiting: CallerTurns<Waiter>;
}

/**
 * NATS stores the messages of a stream one after the other and syncs each, so a namespace with many writes in progress delays all others.
 * Of each namespace only a few are in progress; the others wait, and its callers take turns.
 */
export class StorageTurns {
  readonly #maxWrites: number;
  readonly #namespaces = new Map<string, NamespaceWrites>();

  constructor(maxWrites: number = MAX_WRITES) {
    this.#maxWrites = maxWrites;
  }

  /** Resolves when it is the turn of the owner, and holds a place until it is disposed. Throws TEMPER_CANCELLED when the signal aborts. */
  async take(owner: JobOwner, signal: AbortSignal): Promise<Disposable> {
    const writes = this.#namespaces.get(owner.namespace) ?? { active: 0, waiting: new CallerTurns<Waiter>() };
    this.#namespaces.set(owner.namespace, writes);
    if (writes.active < this.#maxWrites) writes.active += 1;
    else await waitIn(writes.waiting, owner, signal);
    return { [Symbol.dispose]: () => this.#release(owner.namespace, writes) };
  }

  /** The next one that waits gets the place. */
  #release(namespace: string, writes: NamespaceWrites): void {
    const next = writes.waiting.next(() => false);
    if (next !== undefined) {
      next.place.resolve();
      return;
    }
    writes.active -= 1;
    if (writes.active === 0) this.#namespaces.delete(namespace);
  }
}

async function waitIn(waiting: CallerTurns<Waiter>, owner: JobOwner, signal: AbortSignal): Promise<void> {
  const waiter: Waiter = { ...owner, place: Promise.withResolvers() };
  waiting.add(waiter);
  using _cancellation = onAbort(signal, () => {
    if (waiting.remove(waiter)) {
      waiter.place.reject(new TemperError('TEMPER_CANCELLED', 'the client left before it was its turn'));
    }
  });
  await waiter.place.promise;
}
