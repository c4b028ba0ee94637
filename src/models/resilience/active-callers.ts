/** As many callers must fail before their failures count as the provider's. */
const MAX_NEEDED = 3;
const ACTIVE_MS = 3_600_000;

/**
 * The callers of one provider during the last hour. Failures count as the provider's when all of them fail, or three: the text, the rate or the
 * deadline of one agent can make its own calls fail, and must not decide for others. Times are monotonic milliseconds.
 */
export class ActiveCallers {
  /** The last three callers, the latest one last. */
  readonly #seen = new Map<string, number>();

  seen(caller: string, now: number): void {
    this.#seen.delete(caller);
    this.#seen.set(caller, now);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MAX_NEEDED && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** The number of distinct callers that must fail. */
  needed(now: number): number {
    const active = [...this.#seen.values()].filter((time) => now - time < ACTIVE_MS);
    return Math.max(1, active.length);
  }
}
