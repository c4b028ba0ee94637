interface FailureCount {
  count: number;
  podUid: string | undefined;
  at: number;
  message: string;
}

const MIN_DELAY_MS = 10_000;
const MAX_DELAY_MS = 300_000;
/** A failure later than this after the previous one starts a new count. */
const RESET_AFTER_MS = 600_000;

/** Counts recent pod failures per agent, for an exponential backoff. In memory only: after a restart, one retry may come too early. */
export class CrashBackoff {
  readonly #entries = new Map<string, FailureCount>();

  /** Counts each pod once. */
  record(agentUid: string, podUid: string | undefined, message: string, now: Date): void {
    const known = this.#entries.get(agentUid);
    if (podUid !== undefined && known?.podUid === podUid) return;
    const recent = known !== undefined && now.getTime() - known.at < RESET_AFTER_MS ? known.count : 0;
    this.#entries.set(agentUid, { count: recent + 1, podUid, at: now.getTime(), message });
  }

  /** The first failure is retried at once. Each further failure doubles the delay. */
  get(agentUid: string): { count: number; retryAt: Date | undefined; message: string } {
    const entry = this.#entries.get(agentUid);
    if (entry === undefined) return { count: 0, retryAt: undefined, message: '' };
    const wait = entry.count < 2 ? 0 : Math.min(MIN_DELAY_MS * 2 ** (entry.count - 2), MAX_DELAY_MS);
    const message = `${entry.count} pods failed recently, last: ${entry.message}`;
    return { count: entry.count, retryAt: wait === 0 ? undefined : new Date(entry.at + wait), message };
  }

  forget(agentUid: string): void {
    this.#entries.delete(agentUid);
  }
}
