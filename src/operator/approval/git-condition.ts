import type { PullRequestState } from '../../nats/pull-requests.ts';
import type { ConditionUpdate } from '../conditions.ts';

export const GIT_CONDITION = 'InGit';

/** From what needs a user to what needs nothing. */
const URGENCY: readonly PullRequestState['state'][] = ['Failed', 'Closed', 'Open', 'Merged'];

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
