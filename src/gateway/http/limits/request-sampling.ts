/** A request that has ended, as far as it decides whether it is logged. */
export interface EndedRequest {
  route: string;
  status: number;
  milliseconds: number;
  isLongPoll: boolean;
  /** The caller is a pod. */
  ofPod: boolean;
  /** The request ends or extends a delivery. */
  isOutcome: boolean;
  /** The trace of its message is recorded. */
  isTraced: boolean;
}

/** Of the successful fast requests of pods to a route, the first of so many is logged at level info. */
export const LOGGED_ONE_OF = 100;
const SLOW_MS = 1_000;

/**
 * Decides which requests are logged at level info; the others are logged at level debug. A message takes several requests of its pod, and
 * a line for each costs a gateway more than the line is worth: the request of the user and the end of the delivery name the message.
 */
export class RequestSampling {
  readonly #counts = new Map<string, number>();

  isLogged({ route, status, milliseconds, isLongPoll, ofPod, isOutcome, isTraced }: EndedRequest): boolean {
    const isSlow = milliseconds >= SLOW_MS && !isLongPoll;
    if (status >= 400 || isSlow || !ofPod || isOutcome || isTraced) return true;
    // Keyed by the pattern of the route, so there are as many as routes.
    const count = this.#counts.get(route) ?? 0;
    this.#counts.set(route, (count + 1) % LOGGED_ONE_OF);
    return count === 0;
  }
}
