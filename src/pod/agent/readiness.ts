import type { Assignment } from '../../gateway-api/pod-api.ts';

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
  #changed = Promise.withResolvers<void>();
  #notReady = new AbortController();
  #notifying: Promise<void> = Promise.resolve();

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
    const stopped = Promise.withResolvers<void>();
    const stop = (): void => stopped.resolve();
    signal.addEventListener('abort', stop, { once: true });
    try {
      while (!signal.aborted) {
        if (this.#mayWork()) return this.#assignment;
        await Promise.race([this.#changed.promise, stopped.promise]);
      }
      return undefined;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #mayWork(): boolean {
    return this.#assignment !== undefined && this.#hasSandbox && !this.#assignment.suspended;
  }

  #update(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
    if (!this.#mayWork()) {
      this.#notReady.abort();
      this.#notReady = new AbortController();
    }
    const ready = this.#isAccepted && this.#hasSandbox;
    if (ready === this.#ready) return;
    this.#ready = ready;
    this.#notifying = this.#notifying.then(() => this.#onReady(ready));
  }
}
