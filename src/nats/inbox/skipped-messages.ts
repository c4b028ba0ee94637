import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';

/** A message of a session that waited when the search passed it. */
export interface SkippedMessage {
  sequence: number;
  session: string;
}

interface Skipped {
  /** Every message up to this sequence is in `sessions`, or was deleted. */
  position: number;
  /** By sequence, ascending. */
  sessions: Map<number, string>;
}

const MAX_AGENTS = 1_000;

/**
 * Messages that a search has passed, because their sessions wait for a redelivery, so that the next search does not read them again.
 * Kept in memory per process. Losing it is harmless: the next search reads the inbox from its start.
 */
export class SkippedMessages {
  readonly #agents = new LRUCache<string, Skipped>({
    ...entries(MAX_AGENTS),
    memoMethod: () => ({ position: 0, sessions: new Map() }),
  });

  /** The search continues after this sequence. */
  position(agentUid: string): number {
    return this.#agents.get(agentUid)?.position ?? 0;
  }

  /** Adds the message after `position`. */
  add(agentUid: string, { sequence, session }: SkippedMessage): void {
    const skipped = this.#agents.memo(agentUid);
    if (sequence <= skipped.position) return;
    skipped.position = sequence;
    skipped.sessions.set(sequence, session);
  }

  /** The oldest one whose session does not wait any more. */
  oldestOutside(agentUid: string, waiting: ReadonlySet<string>): SkippedMessage | undefined {
    for (const [sequence, session] of this.#agents.get(agentUid)?.sessions ?? []) {
      if (!waiting.has(session)) return { sequence, session };
    }
    return undefined;
  }

  /** Removes a message that is no longer in the inbox. */
  remove(agentUid: string, sequence: number): void {
    const skipped = this.#agents.get(agentUid);
    if (skipped?.sessions.delete(sequence) === true && skipped.sessions.size === 0) this.#agents.delete(agentUid);
  }

  clear(): void {
    this.#agents.clear();
  }
}
