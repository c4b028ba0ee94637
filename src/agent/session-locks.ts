import { untilAborted } from './abort.ts';

/** One at a time for each session, in order of asking. */
export interface SessionLocks {
  /** Rejects without running `work` when the signal aborts while it waits. */
  run<T>(session: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createSessionLocks(): SessionLocks {
  const tails = new Map<string, Promise<void>>();
  return {
    async run(session, signal, work) {
      const before = tails.get(session) ?? Promise.resolve();
      let release: (() => void) | undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const mine = before.then(() => held);
      tails.set(session, mine);
      try {
        await untilAborted(before, signal, `a message in session "${session}"`);
        return await work();
      } finally {
        release?.();
        if (tails.get(session) === mine) tails.delete(session);
      }
    },
  };
}
