interface Entry {
  count: number;
  podUid: string | undefined;
  at: number;
  message: string;
}

const FIRST_WAIT = 10_000;
const LONGEST_WAIT = 300_000;
/** A pod that lived this long ended for another reason than the one before it. */
const FORGIVEN_AFTER = 600_000;

/** How often pods of an agent ended of late. Lost with the process, which costs one try too early. */
export class Failures {
  readonly #entries = new Map<string, Entry>();

  /** Counted once a pod. */
  record(agentUid: string, podUid: string | undefined, message: string, now: Date): void {
    const known = this.#entries.get(agentUid);
    if (podUid !== undefined && known?.podUid === podUid) return;
    const recent = known !== undefined && now.getTime() - known.at < FORGIVEN_AFTER ? known.count : 0;
    this.#entries.set(agentUid, { count: recent + 1, podUid, at: now.getTime(), message });
  }

  /** The first failure is mended at once; each further one waits twice as long. */
  of(agentUid: string): { count: number; retryAt: Date | undefined; message: string } {
    const entry = this.#entries.get(agentUid);
    if (entry === undefined) return { count: 0, retryAt: undefined, message: '' };
    const wait = entry.count < 2 ? 0 : Math.min(FIRST_WAIT * 2 ** (entry.count - 2), LONGEST_WAIT);
    const message = `its pods ended ${entry.count} times of late, last: ${entry.message}`;
    return { count: entry.count, retryAt: wait === 0 ? undefined : new Date(entry.at + wait), message };
  }

  forget(agentUid: string): void {
    this.#entries.delete(agentUid);
  }
}
