import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CONDITIONS } from '../../api/v1alpha1/reasons.ts';
import type { PullRequestState } from '../../nats/pull-requests.ts';
import { GIT_CONDITION, planGitCondition } from './git-condition.ts';
import { RevocationsInGit } from './revocations-in-git.ts';

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

describe('the revocations in Git', () => {
  it('only changed revocations are reconciled again, those that are gone too', () => {
    const revocations = new RevocationsInGit();
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
