/** What was stored from a sequence on. */
interface Generation {
  from: number;
  bytes: number;
  agents: Set<string>;
}

/** Everything of these agents that is older than a sequence is beyond the share. */
export interface Cut {
  before: number;
  agents: string[];
}

/**
 * Counts what is stored in two generations of half a share each. When the newer one is full, everything older than it is beyond the share:
 * at least half a share stays, and at most one. Holds two numbers per generation, however many messages there are.
 */
export class Generations {
  #current: Generation | undefined;
  #previous: Generation | undefined;

  /** Counts a stored message. Returns what is to be removed, when the message fills a generation. */
  add(agentUid: string, bytes: number, sequence: number, share: number): Cut | undefined {
    this.#current ??= { from: sequence, bytes: 0, agents: new Set() };
    const current = this.#current;
    current.from = Math.min(current.from, sequence);
    current.bytes += bytes;
    current.agents.add(agentUid);
    if (current.bytes < share / 2) return undefined;
    const agents = new Set([...current.agents, ...(this.#previous?.agents ?? [])]);
    this.#previous = current;
    this.#current = undefined;
    return { before: current.from, agents: [...agents] };
  }
}
