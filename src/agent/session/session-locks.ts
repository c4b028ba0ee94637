import { untilAborted } from '../abort.ts';

/** A FIFO mutex per session. */
export interface SessionLocks {
  /** Rejects with TEMPER_CANCELLED or TEMPER_TIMEOUT, without running `work`, when the signal aborts during the wait. */
  run<T>(session: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createSessionLocks(): SessionLocks {
  const tails = new Map<string, Promise<void>>();
  return {
    async run(session, signal, work) {
      const previous = tails.get(session) ?? Promise.resolve();
      let release: (() => void) | undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const current = previous.then(() => held);
      tails.set(session, current);
      try {
        await untilAborted(previous, signal, `a message in session "${session}"`);
        return await work();
      } finally {
        release?.();
        if (tails.get(session) === current) tails.delete(session);
      }
    },
  };
}
