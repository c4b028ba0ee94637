import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { kstatusOf } from '../../../test/support/kstatus.ts';
import { CONDITIONS } from '../../api/v1alpha1/reasons.ts';
import type { PullRequestState } from '../../nats/pull-requests.ts';
import { GIT_CONDITION, planGitCondition, planPullRequest } from './git-condition.ts';
import { GitStates } from './git-states.ts';

const URL = 'https://git.example.com/org/tools/pulls/3';

function aState(change: Partial<PullRequestState> = {}): PullRequestState {
  return {
    kind: 'Revocation',
    namespace: 'team-a',
    request: 'no-more',
    requestUid: 'u-1',
    place: '["tools","main","tools"]',
    state: 'Open',
    checkedAt: '2031-01-01T00:00:00.000Z',
    url: URL,
    ...change,
  };
}

describe('the condition InGit of an Approval', () => {
  it('every state of a revocation has a documented reason, and a commit on the branch has no address', () => {
    const documented = CONDITIONS.Approval.find(({ type }) => type === GIT_CONDITION)?.reasons ?? {};
    const reasons = (['Open', 'Closed', 'Failed', 'Merged'] as const).map((state) => {
      const condition = planGitCondition([aState({ state, message: 'connection "tools": the server answered 500' })]);
      assert.equal(condition?.status, state === 'Merged' ? 'True' : 'False');
      return condition?.reason ?? '';
    });
    assert.deepEqual(reasons.sort(), Object.keys(documented).sort());
    const { url: _, ...committed } = aState({ state: 'Merged' });
    assert.equal(planGitCondition([committed])?.message, 'the branch has the revocation');
  });

  it('a tool that no branch has gets no condition, and of several branches the worst one counts', () => {
    assert.equal(planGitCondition([]), undefined);
    assert.equal(planGitCondition([aState({ state: 'Absent' })]), undefined);
    const states = [aState({ state: 'Merged' }), aState({ state: 'Closed' }), aState()];
    assert.equal(planGitCondition(states)?.reason, 'RevocationRefused');
  });
});

describe('the condition InGit of an ApprovalRequest', () => {
  const request = (change: Partial<PullRequestState>) => planPullRequest([aState({ kind: 'Request', ...change })]);

  it('every state of a pull request has a documented reason, and a merge alone is True', () => {
    const documented = CONDITIONS.ApprovalRequest.find(({ type }) => type === GIT_CONDITION)?.reasons ?? {};
    const reasons = (['Open', 'Closed', 'Failed', 'Merged'] as const).map((state) => {
      const [condition] = request({ state });
      assert.equal(condition?.status, state === 'Merged' ? 'True' : 'False');
      return condition?.reason ?? '';
    });
    assert.deepEqual(reasons.sort(), Object.keys(documented).sort());
    assert.deepEqual(planPullRequest([]), []);
    assert.deepEqual(request({ state: 'Absent' }), []);
  });

  it('the message of each state names what a user does next', () => {
    assert.match(request({})[0]?.message ?? '', /pulls\/3 waits for a merge, which approves the tool/);
    const [closed] = request({ state: 'Closed', number: 3 });
    assert.match(closed?.message ?? '', /was closed without a merge; deny the request, or reopen the pull request/);
    const [deleted] = request({ state: 'Closed', url: 'https://git.example.com/tools.git#temper/x' });
    assert.match(
      deleted?.message ?? '',
      /tools\.git#temper\/x was deleted without a merge; deny the request, or push the branch again/,
    );
  });

  it('a failure is InProgress for kstatus, with the cause, the next step and the next attempt', () => {
    const conditions = request({ state: 'Failed', message: 'connection "tools": the server answered 500' });
    assert.deepEqual(
      conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`),
      ['InGit=False PullRequestFailed', 'Reconciling=True PullRequestFailed'],
    );
    assert.match(
      conditions[0]?.message ?? '',
      /the server answered 500; correct the connection.*promotion\.toShared\.gitOps.*tries again each minute/,
    );
    const metadata = { generation: 1 };
    const status = { observedGeneration: 1, conditions: conditions.map((one) => ({ ...one, lastTransitionTime: '' })) };
    assert.equal(kstatusOf({ metadata, status }), 'InProgress');
  });

  it('the time of the next attempt is named when the server delays it, and a short delay changes no message', () => {
    const failed = (retryAt: string) => request({ state: 'Failed', message: 'busy', retryAt })[0]?.message ?? '';
    assert.match(failed('2031-01-01T01:00:00.000Z'), /tries again at 2031-01-01T01:00:00\.000Z/);
    assert.match(failed('2031-01-01T00:02:00.000Z'), /tries again each minute/);
  });
});

describe('the states in Git', () => {
  it('only changed revocations are reconciled again, those that are gone too, and no request', () => {
    const revocations = new GitStates('Revocation');
    assert.equal(revocations.of('u-1'), undefined);
    assert.deepEqual(revocations.update([aState(), aState({ kind: 'Request', requestUid: 'u-2' })]), [
      'team-a/no-more',
    ]);
    assert.deepEqual(revocations.update([aState({ checkedAt: 'later' })]), []);
    assert.deepEqual(revocations.of('u-1')?.length, 1);
    assert.deepEqual(revocations.of('u-2'), []);
    assert.deepEqual(revocations.update([aState({ state: 'Merged' })]), ['team-a/no-more']);
    assert.deepEqual(revocations.update([]), ['team-a/no-more']);
    assert.deepEqual(revocations.update([]), []);
  });
});
