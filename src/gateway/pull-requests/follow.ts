import { type Connection, type GitConnection, gitConnectionFor } from '../../connections/connection.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { PullRequestState } from '../../nats/pull-requests.ts';
import type { RepositoryLocation } from '../../review/pull-requests/draft.ts';
import type { Proposal, Repository } from '../../review/pull-requests/port.ts';

/** `promotion.toShared.gitOps` of a policy. */
export type GitOpsLocation = RepositoryLocation & { readonly connection: string };

/** What a branch of a repository needs because of one object. */
export interface GitTask {
  readonly kind: PullRequestState['kind'];
  readonly namespace: string;
  /** Name and UID of the object. */
  readonly name: string;
  readonly uid: string;
  readonly gitOps: GitOpsLocation;
  /** Opens the pull request, or reads its state. Undefined: the branch needs nothing. */
  run(repository: TaskRepository, known: PullRequestState | undefined): Promise<GitTaskResult | undefined>;
}

interface TaskRepository {
  readonly repository: Repository;
  readonly connection: GitConnection;
  readonly op: CallOptions;
}

/** A commit on the branch itself has neither number nor URL. */
interface GitTaskResult {
  readonly state: 'Open' | 'Merged' | 'Closed';
  readonly number?: number;
  readonly url?: string;
}

export interface FollowDeps {
  readonly connections: readonly Connection[];
  readonly clock: Clock;
  repositoryOf(connection: GitConnection): Repository;
}

const OPEN_INTERVAL_MS = 60_000;
/** A closed request may be opened again, and a branch may lose what was merged. */
const SLOW_INTERVAL_MS = 5 * 60_000;
/** Most of what was revoked once stays as it is. */
const RECORDED_INTERVAL_MS = 30 * 60_000;
const TIMEOUT_MS = 30_000;
const MAX_MESSAGE = 400;

/** Whether the state is too old to be kept. */
export function isDue(known: PullRequestState | undefined, now: Date): boolean {
  if (known === undefined) return true;
  if (known.retryAt !== undefined) return now.getTime() >= Date.parse(known.retryAt);
  const age = now.getTime() - Date.parse(known.checkedAt);
  return !(age >= 0 && age < intervalOf(known));
}

function intervalOf({ kind, state }: PullRequestState): number {
  if (state === 'Open' || state === 'Failed') return OPEN_INTERVAL_MS;
  return kind === 'Revocation' && state !== 'Closed' ? RECORDED_INTERVAL_MS : SLOW_INTERVAL_MS;
}

/** Is it a state of the task? A request keeps its pull request when its policy names another location, and a revocation may have several. */
export function isStateOf({ kind, uid, gitOps }: GitTask): (state: PullRequestState) => boolean {
  const location = locationOf(gitOps);
  return (state) => state.kind === kind && state.requestUid === uid && (kind === 'Request' || state.place === location);
}

/** What a proposal needs of an earlier look. After a failure a pull request is looked for again, since a step may be missing. */
export function knownTo(state: PullRequestState | undefined): Pick<Proposal, 'known'> {
  const { number, url } = state ?? {};
  return {
    known: {
      ...(number === undefined || state?.state === 'Failed' ? {} : { number }),
      ...(url === undefined ? {} : { url }),
    },
  };
}

/** Does one task. A failure is a state too; never throws but for an aborted signal. */
export async function follow(
  task: GitTask,
  known: PullRequestState | undefined,
  deps: FollowDeps,
  signal: AbortSignal,
): Promise<PullRequestState> {
  const { kind, namespace, name, uid, gitOps } = task;
  const checkedAt = deps.clock.now().toISOString();
  const about = { kind, namespace, request: name, requestUid: uid, place: locationOf(gitOps), checkedAt };
  const before = identityOf(known);
  try {
    const connection = gitConnectionFor(deps.connections, gitOps.connection, namespace);
    const op: CallOptions = { signal, deadline: deps.clock.monotonic() + TIMEOUT_MS, key: uid };
    const found = await task.run({ repository: deps.repositoryOf(connection), connection, op }, known);
    return found === undefined
      ? { ...about, state: 'Absent' }
      : { ...about, ...before, ...identityOf(found), state: found.state };
  } catch (error) {
    signal.throwIfAborted();
    const message = printable(messageOf(error), MAX_MESSAGE);
    return { ...about, ...before, state: 'Failed', message, ...retryTime(error, deps.clock) };
  }
}

/** When the server asks to be asked again. */
function retryTime(error: unknown, clock: Clock): Pick<PullRequestState, 'retryAt'> {
  const seconds = isTemperError(error) ? error.details['retryAfterSeconds'] : undefined;
  if (typeof seconds !== 'number') return {};
  return { retryAt: new Date(clock.now().getTime() + seconds * 1_000).toISOString() };
}

/** What identifies the pull request on its server. */
function identityOf(found: Partial<Pick<GitTaskResult, 'number' | 'url'>> | undefined) {
  const { number, url } = found ?? {};
  return {
    ...(number === undefined ? {} : { number }),
    ...(url === undefined ? {} : { url: printable(url, MAX_MESSAGE) }),
  };
}

function locationOf({ connection, branch, path }: GitOpsLocation): string {
  return JSON.stringify([connection, branch, path]);
}
