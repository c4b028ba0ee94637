import { Notifier } from '../../../lib/async/notifier.ts';
import { SerialQueue } from '../../../lib/async/serial-queue.ts';
import type { Assignment } from '../../../gateway-api/pod-api.ts';

/**
 * Readiness of the pod. Ready (for the probe): the gateway accepted the pod and the sandbox is connected. May work: in addition the
 * pod has an assignment, and the agent is not suspended.
 */
export class Readiness {
  readonly #onReady: (ready: boolean) => Promise<void>;
  #assignment: Assignment | undefined;
  #isAccepted = false;
  #hasSandbox = false;
  #ready = false;
  readonly #changes = new Notifier();
  #notReady = new AbortController();
  readonly #notifications = new SerialQueue();

  /** `onReady` is called once per change, in order; each call waits for the previous one. */
  constructor(onReady: (ready: boolean) => Promise<void>) {
    this.#onReady = onReady;
  }

  get assignment(): Assignment | undefined {
    return this.#assignment;
  }

  /** Aborted when the pod may no longer work, so that a poll for messages stops. */
  get interruption(): AbortSignal {
    return this.#notReady.signal;
  }

  /** The gateway accepted this pod: with an assignment when it is bound, without one while it is a warm pod. */
  setAssignment(assignment: Assignment | undefined): void {
    this.#isAccepted = true;
    this.#assignment = assignment ?? this.#assignment;
    this.#update();
  }

  setSandboxConnected(connected: boolean): void {
    this.#hasSandbox = connected;
    this.#update();
  }

  /** Waits until the pod may work and returns its assignment; undefined when the signal aborts first. */
  async whenReady(signal: AbortSignal): Promise<Assignment | undefined> {
    while (!signal.aborted) {
      if (this.#mayWork()) return this.#assignment;
      await this.#changes.wait(signal);
    }
    return undefined;
  }

  #mayWork(): boolean {
    return this.#assignment !== undefined && this.#hasSandbox && !this.#assignment.suspended;
  }

  #update(): void {
    this.#changes.notifyAll();
    if (!this.#mayWork()) {
      this.#notReady.abort();
      this.#notReady = new AbortController();
    }
    const ready = this.#isAccepted && this.#hasSandbox;
    if (ready === this.#ready) return;
    this.#ready = ready;
    void this.#notifications.run(() => this.#onReady(ready));
  }
}
