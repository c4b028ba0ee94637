import type { DiscoveryEntry } from '../../discovery/entry.ts';
import type { Decider } from '../../policy/types.ts';

/**
 * Whether an agent may list entries of the catalog. A search asks about every entry, so decisions are kept as long as the decider and the
 * entry: neither changes, and a change of the policy, the agent or the capability makes another one.
 */
export class EntryVisibility {
  readonly #decisions = new WeakMap<Decider, WeakMap<DiscoveryEntry, boolean>>();

  of(agent: string, decider: Decider): (entry: DiscoveryEntry) => boolean {
    const decisions = this.#decisions.get(decider) ?? new WeakMap<DiscoveryEntry, boolean>();
    this.#decisions.set(decider, decisions);
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
}
