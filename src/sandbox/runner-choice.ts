import type { PriorityTurns } from '../lib/async/priority-turns.ts';

/** A runner of the pool, as far as the choice of one goes. */
interface ChoosableRunner {
  state: string;
  /** The session whose jobs it ran; undefined before its first job. */
  owner: string | undefined;
}

interface ChoosableJob {
  /** Undefined for a wait that runs nothing. */
  owner: string | undefined;
  rank: number;
}

interface Turn {
  /** The owner of the last job that started. */
  lastOwner: string | undefined;
  turns: PriorityTurns;
}

/** An idle runner that may run a job of this owner: one that it used before, or else an unused one. No process serves two owners. */
export function runnerFor<R extends ChoosableRunner>(runners: Iterable<R>, owner: string | undefined): R | undefined {
  let unused: R | undefined;
  for (const runner of runners) {
    if (runner.state !== 'idle') continue;
    if (runner.owner !== undefined && runner.owner === owner) return runner;
    if (runner.owner === undefined) unused ??= runner;
  }
  return unused;
}

/** The waiting job that runs next, with its runner. The ranks decide first, then the owners. The caller starts it: the turn is taken. */
export function nextJob<J extends ChoosableJob, R extends ChoosableRunner>(
  queue: Iterable<J>,
  runners: ReadonlySet<R>,
  { lastOwner, turns }: Turn,
): { job: J; runner: R } | undefined {
  const jobs = [...queue];
  const waiting = jobs.map(({ rank }) => rank);
  for (const rank of turns.order(waiting)) {
    const found = nextOfRank(
      jobs.filter((job) => job.rank === rank),
      runners,
      lastOwner,
    );
    if (found === undefined) continue;
    turns.taken(rank, waiting);
    return found;
  }
  return undefined;
}

/**
 * Of the jobs of one rank: a job of an owner that has no running one and did not start the last one comes first,
 * then the oldest. So a session with many jobs waits for itself.
 */
function nextOfRank<J extends ChoosableJob, R extends ChoosableRunner>(
  queue: Iterable<J>,
  runners: ReadonlySet<R>,
  lastOwner: string | undefined,
): { job: J; runner: R } | undefined {
  const working = new Set([...runners].filter(({ state }) => state === 'busy').map(({ owner }) => owner));
  working.add(lastOwner);
  let later: { job: J; runner: R } | undefined;
  for (const job of queue) {
    const runner = runnerFor(runners, job.owner);
    if (runner === undefined) continue;
    if (!working.has(job.owner)) return { job, runner };
    later ??= { job, runner };
  }
  return later;
}

/** An idle runner to end because no unused one is left for the next owner; undefined when one is left, or when all are of `owner`. */
export function runnerToReplace<R extends ChoosableRunner>(
  runners: ReadonlySet<R>,
  owner: string | undefined,
): R | undefined {
  const all = [...runners];
  if (all.some((runner) => runner.owner === undefined)) return undefined;
  return all.find((runner) => runner.state === 'idle' && runner.owner !== owner);
}
