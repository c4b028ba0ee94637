export interface SandboxRestOptions {
  /** The sandbox container has nothing to do, and may be without its process until something needs it. */
  isIdle: () => boolean;
  /** Asks the sandbox container to rest. */
  onRest: () => void;
  /** The sandbox container did not come back in time. */
  onLost: () => void;
  /** Time without a request after which the sandbox container rests; 60 s when absent. */
  restAfterMs?: number | undefined;
  /** Time that it may take to rest, and to be ready again; 30 s when absent. */
  returnTimeoutMs?: number | undefined;
}

const REST_AFTER_MS = 60_000;
/** As long as a startup probe waits for a pod: a container with little processor time starts Node slowly. */
const RETURN_TIMEOUT_MS = 30_000;

/** Decides when the sandbox container rests. While it is away, its launcher starts it again for the next request. */
export class SandboxRest implements Disposable {
  readonly #options: SandboxRestOptions;
  #canRest = false;
  #isAway = false;
  #idle: NodeJS.Timeout | undefined;
  #return: NodeJS.Timeout | undefined;

  constructor(options: SandboxRestOptions) {
    this.#options = options;
  }

  /** Time in milliseconds that a request waits for a sandbox container that is away. */
  get returnTimeoutMs(): number {
    return this.#options.returnTimeoutMs ?? RETURN_TIMEOUT_MS;
  }

  /** The sandbox container was asked to rest, and has not been ready since. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** The sandbox container is ready. */
  ready(canRest: boolean): void {
    this.#canRest = canRest;
    this.#isAway = false;
    this.arrived();
    this.touch();
  }

  /** A request begins or has ended: the time without one starts again. */
  touch(): void {
    clearTimeout(this.#idle);
    if (!this.#canRest || this.#isAway) return;
    this.#idle = setTimeout(() => this.#onIdle(), this.#options.restAfterMs ?? REST_AFTER_MS).unref();
  }

  /** The launcher has taken the place of the sandbox container. */
  arrived(): void {
    clearTimeout(this.#return);
    this.#return = undefined;
  }

  /** The connection closed while the sandbox container is away. */
  awaitReturn(): void {
    this.#return ??= setTimeout(() => {
      this.#return = undefined;
      this.#isAway = false;
      this.#options.onLost();
    }, this.returnTimeoutMs);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#return);
  }

  #onIdle(): void {
    if (!this.#options.isIdle()) {
      this.touch();
      return;
    }
    this.#isAway = true;
    this.#options.onRest();
    this.awaitReturn();
  }
}
