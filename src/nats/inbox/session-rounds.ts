import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { MAX_OPEN_SESSIONS } from './delivery-state.ts';

const MAX_AGENTS = 10_000;

/**
 * The sessions of each agent that got a message in the present round. A session gets its next one when every other session that has
 * messages got one, so sessions with many messages do not delay a session with one. Kept in memory per process; losing it starts a round.
 */
export class SessionRounds {
  readonly #served = new LRUCache<string, Set<string>>({ ...entries(MAX_AGENTS), memoMethod: () => new Set() });

  served(agentUid: string): ReadonlySet<string> {
    return this.#served.get(agentUid) ?? new Set();
  }

  add(agentUid: string, session: string): void {
    const served = this.#served.memo(agentUid);
    if (served.size >= MAX_OPEN_SESSIONS) served.clear();
    served.add(session);
  }

  restart(agentUid: string): void {
    this.#served.delete(agentUid);
  }

  clear(): void {
    this.#served.clear();
  }
}
