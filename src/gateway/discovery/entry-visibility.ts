import { setImmediate } from 'node:timers/promises';
import type { DiscoveryEntry } from '../../discovery/entry.ts';
import type { Decider } from '../../policy/types.ts';

/** Decisions in one turn of the event loop: a millisecond or two. */
const TURN_DECISIONS = 250;

/**
 * Whether an agent may list entries of the catalog. A search asks about every entry, so decisions are kept as long as the decider and the
 * entry: neither changes, and a change of the policy, the agent or the capability makes another one.
 */
export class EntryVisibility {
  readonly #decisions = new WeakMap<Decider, WeakMap<DiscoveryEntry, boolean>>();

  /**
   * Decides about the entries that the decider does not know, and lets other requests run in between: the first search of a decider asks
   * about a whole namespace. What changes meanwhile, the search itself decides.
   */
  async decide(agent: string, decider: Decider, entries: Iterable<DiscoveryEntry>): Promise<void> {
    const decisions = this.#decisionsOf(decider);
    const permits = this.of(agent, decider);
    let decided = 0;
    for (const entry of entries) {
      if (decisions.has(entry)) continue;
      permits(entry);
      decided += 1;
      if (decided % TURN_DECISIONS === 0) await setImmediate();
    }
  }

  of(agent: string, decider: Decider): (entry: DiscoveryEntry) => boolean {
    const decisions = this.#decisionsOf(decider);
    return (entry) => {
      if (entry.agent !== undefined && entry.agent !== agent) return false;
      const known = decisions.get(entry);
      if (known !== undefined) return known;
      const { request } = entry;
      const visible = request === undefined || decider.decide(request).effect !== 'Deny';
      decisions.set(entry, visible);
      return visible;
    };
  }
  #decisionsOf(decider: Decider): WeakMap<DiscoveryEntry, boolean> {
    const decisions = this.#decisions.get(decider) ?? new WeakMap<DiscoveryEntry, boolean>();
    this.#decisions.set(decider, decisions);
    return decisions;
  }
}
