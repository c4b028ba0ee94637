/** The times at which a schedule is due, in epoch milliseconds. */
export interface Occurrences {
  /** The first one after this time; undefined when there is none. */
  next(after: number): number | undefined;
  /** The last one that is not after this time; undefined when there is none. */
  latest(at: number): number | undefined;
}

/** A fixed grid. `phase` moves it, so that schedules with the same interval are not due at the same moment. */
export function intervalOccurrences(everyMs: number, phase: number): Occurrences {
  const latest = (at: number): number => Math.floor((at - phase) / everyMs) * everyMs + phase;
  return { next: (after) => latest(after) + everyMs, latest };
}

export function singleOccurrence(dueAt: number): Occurrences {
  return {
    next: (after) => (dueAt > after ? dueAt : undefined),
    latest: (at) => (dueAt <= at ? dueAt : undefined),
  };
}

/** The same times, each later by `offsetMs`. */
export function shifted(all: Occurrences, offsetMs: number): Occurrences {
  const later = (time: number | undefined): number | undefined => (time === undefined ? undefined : time + offsetMs);
  return { next: (after) => later(all.next(after - offsetMs)), latest: (at) => later(all.latest(at - offsetMs)) };
}
