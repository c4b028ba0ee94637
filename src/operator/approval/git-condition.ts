import type { PullRequestState } from '../../nats/pull-requests.ts';
import type { ConditionUpdate } from '../conditions.ts';

export const GIT_CONDITION = 'InGit';

/** A server that delays its next answer for less changes no message, so that a refused request costs one write of its status. */
const NAMED_DELAY_MS = 5 * 60_000;

/** From what needs a user to what needs nothing. */
const URGENCY: readonly PullRequestState['state'][] = ['Failed', 'Closed', 'Open', 'Merged'];

type GitFinding = ConditionUpdate<typeof GIT_CONDITION> | ConditionUpdate<'Reconciling'>;

/** How far the pull request of an ApprovalRequest is. A failure is progress that is still to come, because the gateway tries again. Pure. */
export function planPullRequest(states: readonly PullRequestState[]): GitFinding[] {
  const [state] = states.filter((one) => one.state !== 'Absent');
  if (state === undefined) return [];
  const condition = pullRequestContent(state);
  const inGit = { type: GIT_CONDITION, ...condition } as const;
  if (state.state !== 'Failed') return [inGit];
  return [inGit, { ...condition, type: 'Reconciling', status: 'True' }];
}

function pullRequestContent(of: PullRequestState): Omit<ConditionUpdate, 'type'> {
  const { state, number, url = 'the branch', message = '' } = of;
  switch (state) {
    case 'Open':
      return {
        status: 'False',
        reason: 'PullRequestOpened',
        message: `${url} waits for a merge, which approves the tool`,
      };
    case 'Closed': {
      const [done, undo] =
        number === undefined ? ['deleted', 'push the branch again'] : ['closed', 'reopen the pull request'];
      return {
        status: 'False',
        reason: 'PullRequestClosed',
        message: `${url} was ${done} without a merge; deny the request, or ${undo}`,
      };
    }
    case 'Failed':
      return {
        status: 'False',
        reason: 'PullRequestFailed',
        message: `the pull request could not be opened or read: ${message}; correct the connection, its token, or promotion.toShared.gitOps of the policy. The gateway tries again ${nextAttempt(of)}`,
      };
    case 'Merged':
    case 'Absent':
      return {
        status: 'True',
        reason: 'PullRequestMerged',
        message: `${url} is merged; the tool is shared when its files are applied to the cluster`,
      };
  }
}

function nextAttempt({ retryAt, checkedAt }: PullRequestState): string {
  const delayMs = retryAt === undefined ? 0 : Date.parse(retryAt) - Date.parse(checkedAt);
  return delayMs > NAMED_DELAY_MS ? `at ${retryAt}` : 'each minute';
}

/** Whether Git says that the tool is revoked, so that a cluster that is rebuilt from Git does not use it. Pure. */
export function planGitCondition(
  states: readonly PullRequestState[],
): ConditionUpdate<typeof GIT_CONDITION> | undefined {
  const [state] = states
    .filter((one) => one.state !== 'Absent')
    .sort((one, other) => URGENCY.indexOf(one.state) - URGENCY.indexOf(other.state));
  return state === undefined ? undefined : { type: GIT_CONDITION, ...contentOf(state) };
}

function contentOf({ state, number, url, message = '' }: PullRequestState): Omit<ConditionUpdate, 'type'> {
  const where = url ?? 'the branch';
  switch (state) {
    case 'Open':
      return {
        status: 'False',
        reason: 'RevocationProposed',
        message: `${where} waits for a merge; until then a cluster rebuilt from Git uses the tool again`,
      };
    case 'Closed':
      return {
        status: 'False',
        reason: 'RevocationRefused',
        message: `${where} was ${number === undefined ? 'deleted' : 'closed'} without a merge, so a cluster rebuilt from Git uses the tool again; ${number === undefined ? 'push the branch again' : 'reopen it'}`,
      };
    case 'Failed':
      return {
        status: 'False',
        reason: 'RevocationNotWritten',
        message: `${message}; the gateway tries again, and until then a cluster rebuilt from Git uses the tool again`,
      };
    case 'Merged':
    case 'Absent':
      return { status: 'True', reason: 'RevocationRecorded', message: `${where} has the revocation` };
  }
}
