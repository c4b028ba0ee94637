import type { Change } from '../../kube/informer/store.ts';
import type { StoredAgent } from '../kube/types.ts';

/** Position of an agent among the agents of its policy, the oldest first. */
export interface AgentRank {
  /** Number of older agents. */
  readonly older: number;
  readonly all: number;
}

/** The agents of each policy by age, kept in order with each change, because a policy may have ten thousand agents. */
export class AgentRanks {
  /** By policy key: the ages of its agents, sorted. */
  readonly #ages = new Map<string, string[]>();
  /** By UID: the policy under which the agent counts. */
  readonly #policies = new Map<string, string>();

  /** Call on every change of an agent, before the reconcile that the change causes. */
  onChange({ type, object }: Pick<Change<StoredAgent>, 'type' | 'object'>): void {
    const { uid, deletionTimestamp } = object.metadata;
    // A deleted agent releases its place at once, while its finalizers still run.
    const key = type === 'deleted' || deletionTimestamp !== undefined ? undefined : policyKeyOf(object);
    const before = this.#policies.get(uid);
    if (before === key) return;
    if (before !== undefined) this.#remove(before, object);
    if (key !== undefined) this.#add(key, object);
  }

  /** Both numbers are 0 for a policy without agents. */
  rank(agent: StoredAgent): AgentRank {
    const ages = this.#ages.get(policyKeyOf(agent)) ?? [];
    return { older: positionIn(ages, ageOf(agent)), all: ages.length };
  }

  #add(key: string, agent: StoredAgent): void {
    const ages = this.#ages.get(key) ?? [];
    this.#ages.set(key, ages);
    const age = ageOf(agent);
    ages.splice(positionIn(ages, age), 0, age);
    this.#policies.set(agent.metadata.uid, key);
  }

  #remove(key: string, agent: StoredAgent): void {
    const ages = this.#ages.get(key) ?? [];
    ages.splice(positionIn(ages, ageOf(agent)), 1);
    if (ages.length === 0) this.#ages.delete(key);
    this.#policies.delete(agent.metadata.uid);
  }
}

/** `namespace/name` of the policy of an agent. */
export function policyKeyOf({ metadata, spec }: StoredAgent): string {
  return `${metadata.namespace}/${spec.trustPolicyRef.name}`;
}

/** Creation times have whole seconds, so the UID decides between agents of the same second. */
function ageOf({ metadata }: StoredAgent): string {
  return `${metadata.creationTimestamp} ${metadata.uid}`;
}

/** The first position whose age is not less, by binary search. */
function positionIn(ages: readonly string[], age: string): number {
  let low = 0;
  let high = ages.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ages[middle] ?? '') < age) low = middle + 1;
    else high = middle;
  }
  return low;
}
