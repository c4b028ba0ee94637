/** Panels that an agent, and the agents of one namespace, wait for at once. */
const MAX_PER_AGENT = 2;
const MAX_PER_NAMESPACE = 4;

interface Reviewed {
  readonly namespace: string;
  readonly uid: string;
}

/**
 * Which promotions wait for their panels. The others wait here and not in the queue of the gateways, where they would be in front of those
 * of other agents: a panel takes as long as its slowest reviewer.
 */
export class ReviewTurns {
  /** By work queue key of the promotion. */
  readonly #waiting = new Map<string, Reviewed>();

  /** Whether the panel may be asked now. Idempotent. */
  begin(key: string, agent: Reviewed): boolean {
    if (this.#waiting.has(key)) return true;
    const all = [...this.#waiting.values()];
    const ofAgent = all.filter(({ uid }) => uid === agent.uid).length;
    const ofNamespace = all.filter(({ namespace }) => namespace === agent.namespace).length;
    if (ofAgent >= MAX_PER_AGENT || ofNamespace >= MAX_PER_NAMESPACE) return false;
    this.#waiting.set(key, agent);
    return true;
  }

  /** The promotion does not wait for its panel any more. */
  end(key: string): void {
    this.#waiting.delete(key);
  }
}
