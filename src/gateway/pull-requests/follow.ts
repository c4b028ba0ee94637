import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { type Connection, gitConnectionFor } from '../../connections/connection.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { PullRequestState } from '../../nats/pull-requests.ts';
import { type PromotionObjects, reviewOfObjects } from '../../review/gitops/review-of-objects.ts';
import { pullRequestDraft } from '../../review/pull-requests/draft.ts';
import { openPullRequest } from '../../review/pull-requests/open-pull-request.ts';
import type { PullRequest, PullRequestServer } from '../../review/pull-requests/port.ts';
import type { GitConnection } from '../../connections/connection.ts';

/** An ApprovalRequest for tier Shared whose policy asks for a pull request. */
export interface PendingRequest {
  readonly request: ApprovalRequest;
  readonly namespace: string;
  /** `promotion.toShared.gitOps` of the policy. */
  readonly gitOps: { readonly connection: string; readonly branch: string; readonly path: string };
}

export interface FollowDeps {
  readonly connections: readonly Connection[];
  readonly clock: Clock;
  serverOf(connection: GitConnection): PullRequestServer;
  /** The objects of the promotion; undefined when the tool does not exist. */
  objectsOf(pending: PendingRequest, signal: AbortSignal): Promise<PromotionObjects | undefined>;
}

const OPEN_INTERVAL_MS = 60_000;
/** A closed request may be opened again, and a failure may be of a configuration that stays as it is. */
const SLOW_INTERVAL_MS = 5 * 60_000;
const TIMEOUT_MS = 30_000;
const MAX_MESSAGE = 400;

/** Whether the state is too old to be kept. */
export function isDue(known: PullRequestState | undefined, now: Date): boolean {
  if (known === undefined) return true;
  const age = now.getTime() - Date.parse(known.checkedAt);
  const interval = known.state === 'Open' || known.state === 'Failed' ? OPEN_INTERVAL_MS : SLOW_INTERVAL_MS;
  return !(age >= 0 && age < interval);
}

/** Opens the pull request of a request, or reads its state. A failure is a state too; never throws but for an aborted signal. */
export async function follow(
  pending: PendingRequest,
  known: PullRequestState | undefined,
  deps: FollowDeps,
  signal: AbortSignal,
): Promise<PullRequestState> {
  const { request, namespace } = pending;
  const about = { namespace, request: request.metadata.name, requestUid: request.metadata.uid ?? '' };
  const checkedAt = deps.clock.now().toISOString();
  try {
    const { number, url, state } = await current(pending, known, deps, signal);
    return { ...about, state, checkedAt, number, url: printable(url, MAX_MESSAGE) };
  } catch (error) {
    signal.throwIfAborted();
    const message = printable(messageOf(error), MAX_MESSAGE);
    const { number, url } = known ?? {};
    return {
      ...about,
      state: 'Failed',
      checkedAt,
      message,
      ...(number === undefined ? {} : { number }),
      ...(url === undefined ? {} : { url }),
    };
  }
}

async function current(
  pending: PendingRequest,
  known: PullRequestState | undefined,
  deps: FollowDeps,
  signal: AbortSignal,
): Promise<PullRequest> {
  const { namespace, request, gitOps } = pending;
  const connection = gitConnectionFor(deps.connections, gitOps.connection, namespace);
  const server = deps.serverOf(connection);
  const op: CallOptions = { signal, deadline: deps.clock.monotonic() + TIMEOUT_MS, key: request.spec.nonce };
  if (known?.number !== undefined && known.state !== 'Failed') return server.get(known.number, op);
  const objects = await deps.objectsOf(pending, signal);
  if (objects === undefined) throw new Error('the tool of the request does not exist');
  const { approver } = connection.git;
  const review = reviewOfObjects(objects, { namespace, nonce: request.spec.nonce, approvedBy: approver });
  return openPullRequest(server, pullRequestDraft(review, gitOps), op);
}
