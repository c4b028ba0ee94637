import type { Assignment } from '../../../gateway-api/pod-api.ts';
import type { RemoteDelivery } from '../../../gateway-client/bus.ts';
import { Notifier } from '../../../lib/async/notifier.ts';
import type { Slot } from './slot.ts';

/** The slots of a pod: each works on one message, and a stuck one delays no other. A slot is opened when no idle one is left. */
export class SlotPool implements AsyncDisposable {
  readonly #open: () => Slot;
  readonly #onError: (error: unknown) => void;
  readonly #idle: Slot[] = [];
  readonly #busy = new Map<Slot, Promise<void>>();
  readonly #changes = new Notifier();

  /** `onError` receives what a slot throws, which it does for a defect only. */
  constructor(open: () => Slot, onError: (error: unknown) => void) {
    this.#open = open;
    this.#onError = onError;
  }

  /** Waits until fewer than `limit` messages are in work, or the signal aborts. */
  async whenFree(limit: number, signal: AbortSignal): Promise<void> {
    while (this.#busy.size >= limit && !signal.aborted) await this.#changes.wait(signal);
  }

  /** Starts the work on a message; `idle` waits for its end. */
  start(delivery: RemoteDelivery, assignment: Assignment): void {
    const slot = this.#idle.pop() ?? this.#open();
    const work = slot.worker
      .handle(delivery, assignment)
      .catch(this.#onError)
      .finally(() => {
        this.#busy.delete(slot);
        this.#idle.push(slot);
        this.#changes.notifyAll();
      });
    this.#busy.set(slot, work);
  }

  /** Applies a change of tools to all messages in work. A slot without one gets the tools with its next message. */
  refreshTools(): void {
    for (const slot of this.#busy.keys()) void slot.worker.refreshTools();
  }

  /** Waits for the end of all messages in work. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.idle();
    await Promise.all(this.#idle.map((slot) => slot[Symbol.asyncDispose]()));
  }
}
