import { type PullRequestState, type PullRequestStore, MAX_PULL_REQUESTS } from '../../nats/pull-requests.ts';
import type { Logger } from '../../telemetry/log.ts';
import { follow, type FollowDeps, type GitTask, isDue, isStateOf } from './follow.ts';

export interface RoundDeps extends FollowDeps {
  /** Unique per gateway process. */
  readonly holder: string;
  readonly store: PullRequestStore;
  readonly log: Logger;
  /** All tasks; those beyond the limit wait until others end. */
  tasks(signal: AbortSignal): Promise<GitTask[]>;
}

const ROUND_INTERVAL_MS = 15_000;
/** Longer than two rounds, so that a gateway that restarts loses the work, and a slow one does not. */
const LEASE_MS = 60_000;
/** A round ends before its lease does; the rest follows in the next one. */
const ROUND_BUDGET_MS = 25_000;

/**
 * One look at all requests. Only one gateway works: the document of the release names it. Two at the same time would still open one pull
 * request, because each step looks for its own effect first.
 */
export async function pullRequestRound(deps: RoundDeps, signal: AbortSignal): Promise<void> {
  const { store, clock, holder } = deps;
  const { document, revision } = await store.read();
  const now = clock.now();
  if (document !== undefined && document.holder !== holder && Date.parse(document.until) > now.getTime()) return;
  const before = document?.requests ?? [];
  const claimed = await store.write({ holder, until: leaseEnd(now), requests: before }, revision);
  if (claimed === undefined) return;
  const requests = await followAll(deps, before, signal);
  await store.write({ holder, until: leaseEnd(clock.now()), requests }, claimed);
}

/** Runs rounds until the signal aborts, and then leaves the work to another gateway at once. */
export async function followPullRequests(deps: RoundDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await pullRequestRound(deps, signal);
    } catch (error) {
      if (signal.aborted) break;
      deps.log.warn({ error }, 'the pull requests of promotions could not be followed; the next round tries again');
    }
    await deps.clock.sleep(ROUND_INTERVAL_MS, signal).catch(() => undefined);
  }
  await release(deps).catch((error: unknown) =>
    deps.log.debug({ error }, 'the work on pull requests was not released'),
  );
}

async function release({ store, clock, holder }: RoundDeps): Promise<void> {
  const { document, revision } = await store.read();
  if (document?.holder !== holder) return;
  await store.write({ ...document, until: clock.now().toISOString() }, revision);
}

/** The states of all tasks; those that are done or gone are left out. */
async function followAll(
  deps: RoundDeps,
  before: readonly PullRequestState[],
  signal: AbortSignal,
): Promise<PullRequestState[]> {
  const { clock, log } = deps;
  const deadline = clock.monotonic() + ROUND_BUDGET_MS;
  const states: PullRequestState[] = [];
  for (const task of (await deps.tasks(signal)).slice(0, MAX_PULL_REQUESTS)) {
    const known = before.find(isStateOf(task));
    const isLater = clock.monotonic() >= deadline || !isDue(known, clock.now());
    if (isLater) {
      if (known !== undefined) states.push(known);
      continue;
    }
    const state = await follow(task, known, deps, signal);
    if (state.state !== known?.state || state.message !== known.message) logChange(log, state);
    states.push(state);
  }
  return states;
}

function logChange(log: Logger, { kind, namespace, request, state, url, message }: PullRequestState): void {
  const fields = { namespace, name: request, kind, state, ...(url === undefined ? {} : { url }) };
  if (state === 'Failed') log.warn({ ...fields, problem: message }, 'Git could not be read or written');
  else log.info(fields, 'the state in Git changed');
}

function leaseEnd(now: Date): string {
  return new Date(now.getTime() + LEASE_MS).toISOString();
}
