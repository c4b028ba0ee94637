import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import type { IgnoredReason } from '../../approvals/verdict.ts';
import { DIGEST, NONCE } from '../tool/tool.testing.ts';
import { type ObservedApproval, planApproval } from './approval-plan.ts';

function approval(change: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return {
    name: 'csv-rows-alice',
    createdAt: '2031-05-05T11:00:00Z',
    decision: 'Approve',
    nonce: NONCE,
    subject: { promotion: { tool: 'csv_rows', digest: DIGEST, tier: 'Shared' } },
    by: 'alice',
    ...change,
  };
}

const reasonOf = (change: Partial<ObservedApproval> = {}): string =>
  planApproval({
    approval: approval(),
    verdict: { decision: 'Approve', approval: approval() },
    hasSubject: true,
    isTooLate: false,
    otherNonce: undefined,
    ...change,
  }).reason;

const ignoredFor = (reason: IgnoredReason): Partial<ObservedApproval> => ({
  verdict: { decision: 'Pending', ignored: [{ approval: approval(), reason }] },
});

describe('the condition Effective of an Approval', () => {
  it('a decision that counts applies as soon as its request or its tool exists', () => {
    assert.equal(reasonOf(), 'Applied');
    assert.equal(reasonOf({ hasSubject: false }), 'SubjectNotFound');
    assert.equal(reasonOf({ hasSubject: false, otherNonce: 'another-nonce-00' }), 'NonceMismatch');
    assert.equal(reasonOf({ approval: approval({ decision: 'Revoke' }), hasSubject: false }), 'Applied');
  });

  it('an Approval of a request that timed out has no effect, and its denial needs none', () => {
    assert.equal(reasonOf({ isTooLate: true }), 'RequestTimedOut');
    const denied = approval({ decision: 'Deny' });
    assert.equal(
      reasonOf({ isTooLate: true, approval: denied, verdict: { decision: 'Deny', approval: denied } }),
      'Applied',
    );
  });

  it('an Approval that does not count states why', () => {
    assert.equal(reasonOf(ignoredFor('contributor')), 'ContributorMayNotApprove');
    assert.equal(reasonOf(ignoredFor('before-admission-policy')), 'CreatedTooEarly');
    assert.equal(reasonOf(ignoredFor('revoked')), 'Withdrawn');
  });

  it('a revocation and a denial withdraw an Approval, and a denial does not withdraw itself', () => {
    const denied = approval({ decision: 'Deny', name: 'no' });
    assert.equal(reasonOf({ verdict: { decision: 'Revoke', approval: approval() } }), 'Withdrawn');
    assert.equal(reasonOf({ verdict: { decision: 'Deny', approval: denied } }), 'Withdrawn');
    assert.equal(reasonOf({ approval: denied, verdict: { decision: 'Deny', approval: denied } }), 'Applied');
  });
});
