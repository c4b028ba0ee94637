import type { Cache } from './cache.ts';
import type { StoredAgent } from './kube-types.ts';
import type { Bus } from './ports.ts';

/**
 * Removes what the bus keeps of agents that are gone. Who is missing once may have been made a moment ago, so two rounds must miss him.
 */
export class Sweep {
  readonly #bus: Pick<Bus, 'residents' | 'sweep'>;
  readonly #agents: Cache<StoredAgent>;
  #missing = new Set<string>();

  constructor(bus: Pick<Bus, 'residents' | 'sweep'>, agents: Cache<StoredAgent>) {
    this.#bus = bus;
    this.#agents = agents;
  }

  /** How many agents were swept. */
  async round(signal: AbortSignal): Promise<number> {
    const residents = await this.#bus.residents(signal);
    const alive = new Set(this.#agents.list().map(({ metadata }) => metadata.uid));
    const missing = residents.filter((uid) => !alive.has(uid));
    const gone = missing.filter((uid) => this.#missing.has(uid));
    this.#missing = new Set(missing.filter((uid) => !gone.includes(uid)));
    for (const uid of gone) await this.#bus.sweep(uid, signal);
    return gone.length;
  }
}
