import type { Assignment } from '../../remote/wire.ts';

/** What the pod must know and have before it may work. */
export class State {
  readonly #onReady: (ready: boolean) => Promise<void>;
  #assignment: Assignment | undefined;
  #isKnown = false;
  #hasSandbox = false;
  #ready = false;
  #changed = Promise.withResolvers<void>();
  #interrupt = new AbortController();
  #telling: Promise<void> = Promise.resolve();

  /** `onReady` is told in order, one change after the other. */
  constructor(onReady: (ready: boolean) => Promise<void>) {
    this.#onReady = onReady;
  }

  get assignment(): Assignment | undefined {
    return this.#assignment;
  }

  /** Aborted when waiting for a message has become pointless. */
  get interruption(): AbortSignal {
    return this.#interrupt.signal;
  }

  /** The gateway took this pod for one of its own: as somebody's, or, without an assignment, as nobody's yet. */
  answered(assignment: Assignment | undefined): void {
    this.#isKnown = true;
    this.#assignment = assignment ?? this.#assignment;
    this.#change();
  }

  sandbox(connected: boolean): void {
    this.#hasSandbox = connected;
    this.#change();
  }

  /** The assignment, once it is known, the sandbox is there and the agent is not suspended; undefined when the signal came first. */
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

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
    if (!this.#mayWork()) {
      this.#interrupt.abort();
      this.#interrupt = new AbortController();
    }
    const ready = this.#isKnown && this.#hasSandbox;
    if (ready === this.#ready) return;
    this.#ready = ready;
    this.#telling = this.#telling.then(() => this.#onReady(ready));
  }
}
