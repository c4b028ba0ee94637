import type { Clock } from '../../lib/clock.ts';
import { type Finding, reasonOf } from '../conditions.ts';
import type { StoredAgent } from '../kube-types.ts';
import type { AgentFacts } from '../ports.ts';

interface Waiting {
  readonly queue?: number;
}

/** Numbers are written at most this often. */
export const LIVE_EVERY = 300_000;
/** Numbers that move all the time. By themselves they are written every few minutes only. */
export const LIVE = ['summary', 'queue', 'tools'] as const;

/** Nothing else shows that messages wait for who has no pod, so it is written at once. */
export function startsOrStopsWaiting(before: Waiting | undefined, { queue = 0 }: Waiting): boolean {
  return (before?.queue ?? 0) > 0 !== queue > 0;
}

/** Which facts are worth a look at the agent: what its status says already is none. */
export class News {
  readonly #clock: Clock;
  #toldAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isNews(agent: StoredAgent, facts: AgentFacts): boolean {
    return this.#hasOtherConditions(agent, facts) || this.#hasOtherNumbers(agent, facts);
  }

  #hasOtherConditions({ status }: StoredAgent, { model, budget }: AgentFacts): boolean {
    const isOther = (finding: Finding | undefined) => {
      const stands = status?.conditions?.find(({ type }) => type === finding?.type);
      return finding !== undefined && (stands?.reason !== finding.reason || stands.message !== finding.message);
    };
    // That its policy denies the model comes before how the model does.
    const isDenied = reasonOf(status?.conditions, 'ModelAvailable') === 'ModelDenied';
    return (!isDenied && isOther(model)) || isOther(budget);
  }

  #hasOtherNumbers({ metadata, status }: StoredAgent, facts: AgentFacts): boolean {
    if (LIVE.every((field) => facts[field] === undefined || facts[field] === status?.[field])) {
      this.#toldAt.delete(metadata.uid);
      return false;
    }
    if (status?.pod === undefined && startsOrStopsWaiting(status, facts)) return true;
    const now = this.#clock.monotonic();
    const before = this.#toldAt.get(metadata.uid);
    if (before !== undefined && now - before < LIVE_EVERY) return false;
    this.#toldAt.set(metadata.uid, now);
    return true;
  }
}
