const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 300_000;

/** Counts per agent how often applying its plan failed, for the report of a failure and for the delay of the next attempt. */
export class ApplyRetries {
  readonly #consecutiveErrors = new Map<string, number>();
  readonly #rejections = new Map<string, number>();

  /** Counts a failed call. Returns the number of consecutive failures. */
  countError(uid: string): number {
    const errors = (this.#consecutiveErrors.get(uid) ?? 0) + 1;
    this.#consecutiveErrors.set(uid, errors);
    return errors;
  }

  clearErrors(uid: string): void {
    this.#consecutiveErrors.delete(uid);
  }

  /** Counts a reported rejection. Returns the milliseconds until the next attempt: 5 s, doubled, at most 5 minutes. */
  countRejection(uid: string): number {
    const count = this.#rejections.get(uid) ?? 0;
    this.#rejections.set(uid, count + 1);
    return Math.min(MIN_RETRY_MS * 2 ** count, MAX_RETRY_MS);
  }

  clearRejections(uid: string): void {
    this.#rejections.delete(uid);
  }

  forget(uid: string): void {
    this.clearErrors(uid);
    this.clearRejections(uid);
  }
}
