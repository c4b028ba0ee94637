import { abortable } from '../../lib/async/abort.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';

/** Runs the work of one key one at a time, each with its own signal, in the order of the calls. */
export class KeyedTurns {
  readonly #queues = new Map<string, SerialQueue>();

  /** The result of `work`. Rejects while it waits for its turn when the signal aborts; work that has started is awaited. */
  async run<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key) ?? new SerialQueue();
    this.#queues.set(key, queue);
    const started = Promise.withResolvers<void>();
    const turn = queue.run(() => {
      started.resolve();
      signal.throwIfAborted();
      return work();
    });
    const cleanUp = (): void => {
      if (queue.size === 0 && this.#queues.get(key) === queue) this.#queues.delete(key);
    };
    turn.then(cleanUp, cleanUp);
    await abortable(started.promise, signal);
    return turn;
  }
}
