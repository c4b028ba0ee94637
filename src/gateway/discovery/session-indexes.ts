import { LRUCache } from 'lru-cache';
import { type DiscoveryEntry, forgedEntry } from '../../discovery/entry.ts';
import { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import type { SearchSteps } from '../../discovery/lexical/steps.ts';
import type { RegisteredTool } from '../../tempering/types.ts';

/** What searches find of the tools of a session, in the order of the tools. */
export interface SessionIndex {
  readonly entries: readonly DiscoveryEntry[];
  readonly index: LexicalIndex;
}

/** Of all sessions together; an entry with its index takes 4 KiB, and 48 KiB when its texts are as long as they may be. */
const MAX_ENTRIES = 250;

/** The indexes of the sessions that search. An index is the same as long as its tools are; each entry takes about a millisecond to index. */
export class SessionIndexes {
  readonly #known = new LRUCache<string, SessionIndex & { digests: string }>({
    maxSize: MAX_ENTRIES,
    sizeCalculation: ({ entries }) => entries.length + 1,
  });

  /** `run` does the steps of a new index. Throws what it throws. */
  async of(
    owner: { agentUid: string; session: string },
    tools: readonly Pick<RegisteredTool, 'digest' | 'artifact'>[],
    run: (steps: SearchSteps<LexicalIndex>) => Promise<LexicalIndex>,
  ): Promise<SessionIndex> {
    const key = JSON.stringify([owner.agentUid, owner.session]);
    const digests = tools.map(({ digest }) => digest).join(' ');
    const known = this.#known.get(key);
    if (known?.digests === digests) return known;
    const entries = tools.map(({ artifact }) => forgedEntry(artifact));
    const index = await run(LexicalIndex.stepsOf(entries));
    this.#known.set(key, { entries, index, digests });
    return { entries, index };
  }
}
