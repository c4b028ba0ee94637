import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { ApprovalRecord } from './approval-record.ts';
import { type ApprovalQuestion, type Verdict, verdictOn } from './verdict.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const OTHER = `sha256:${'b'.repeat(64)}`;
const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';
const NEW_NONCE = 'n5r8qXn3Ad9wO2ySu7Zc';
const promotion = (digest = DIGEST, tier: 'Agent' | 'Shared' = 'Shared', tool = 'csv_rows') => ({
  promotion: { tool, digest, tier },
});
const call = (callId: string, argumentsDigest = DIGEST) => ({
  call: { agent: 'analyst', agentUid: 'u-1', tool: 'git_push', argumentsDigest, callId },
});

function anApproval(second: number, change: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return {
    name: `apv-${second}`,
    createdAt: new Date(Date.UTC(2031, 0, 1, 0, 0, second)).toISOString(),
    decision: 'Approve',
    nonce: NONCE,
    subject: promotion(),
    by: 'alice',
    ...change,
  };
}

const question: ApprovalQuestion = { subject: promotion(), nonce: NONCE, contributors: ['agent/analyst', 'bob'] };
const decide = (approvals: readonly ApprovalRecord[], change: Partial<ApprovalQuestion> = {}): Verdict =>
  verdictOn({ ...question, ...change }, approvals);
const ignoredOf = (verdict: Verdict) => ('ignored' in verdict ? verdict.ignored.map(({ reason }) => reason) : []);

describe('the verdict on a request', () => {
  it('an Approval of exactly the subject and nonce approves it', () => {
    assert.equal(decide([anApproval(1)]).decision, 'Approve');
    assert.equal(decide([]).decision, 'Pending');
    const others = [promotion(OTHER), promotion(DIGEST, 'Agent'), promotion(DIGEST, 'Shared', 'csv_row'), call('c-1')];
    for (const subject of others) assert.equal(decide([anApproval(1, { subject })]).decision, 'Pending');
    assert.deepEqual(ignoredOf(decide([anApproval(1, { nonce: NEW_NONCE })])), ['nonce']);
  });

  it('without a request nothing is approved, and every revocation of the digest counts', () => {
    assert.deepEqual(ignoredOf(decide([anApproval(1)], { nonce: undefined })), ['nonce']);
    const revoked = anApproval(1, { decision: 'Revoke', nonce: NEW_NONCE, subject: promotion(DIGEST, 'Agent', 'x') });
    assert.equal(decide([revoked], { nonce: undefined }).decision, 'Revoke');
    assert.equal(decide([{ ...revoked, subject: promotion(OTHER) }], { nonce: undefined }).decision, 'Pending');
  });

  it('a contributor cannot approve under any form of the name, and can deny', () => {
    for (const contributors of [['alice'], ['user/alice'], ['agent/analyst', 'user/alice']]) {
      assert.deepEqual(ignoredOf(decide([anApproval(1)], { contributors })), ['contributor']);
      assert.equal(decide([anApproval(1, { decision: 'Deny' })], { contributors }).decision, 'Deny');
    }
    assert.equal(decide([anApproval(1), anApproval(2, { by: 'bob' })]).decision, 'Approve');
  });

  it('an Approval from before the admission policy does not count, and neither does one without a time', () => {
    const notBefore = new Date(Date.UTC(2031, 0, 1, 0, 0, 10));
    assert.deepEqual(ignoredOf(decide([anApproval(9)], { notBefore })), ['before-admission-policy']);
    assert.deepEqual(ignoredOf(decide([anApproval(1, { createdAt: '' })], { notBefore })), ['before-admission-policy']);
    assert.equal(decide([anApproval(10)], { notBefore }).decision, 'Approve');
    assert.equal(decide([anApproval(1, { decision: 'Deny' })], { notBefore }).decision, 'Deny');
  });

  it('a denial outranks an approval of the same request, in any order', () => {
    for (const [approved, denied] of [
      [1, 2],
      [2, 1],
    ] as const) {
      const approvals = [anApproval(approved), anApproval(denied, { decision: 'Deny', name: 'no' })];
      assert.equal(decide(approvals).decision, 'Deny');
    }
    assert.equal(decide([anApproval(1), anApproval(2, { decision: 'Deny', nonce: NEW_NONCE })]).decision, 'Approve');
  });

  it('a revocation withdraws the Approvals of its nonce, also those that are applied again later', () => {
    const revoked = anApproval(5, { decision: 'Revoke', name: 'revoked' });
    assert.equal(decide([anApproval(1), revoked]).decision, 'Revoke');
    assert.equal(decide([anApproval(9), revoked]).decision, 'Revoke');
    assert.equal(decide([revoked]).decision, 'Revoke');
  });

  it('a revocation withdraws every older Approval of the digest, and none that answers a later request', () => {
    const revoked = anApproval(5, { decision: 'Revoke', name: 'revoked' });
    const again = { nonce: NEW_NONCE };
    assert.equal(decide([anApproval(4, again), revoked], again).decision, 'Revoke');
    assert.equal(decide([anApproval(5, again), revoked], again).decision, 'Revoke');
    assert.equal(decide([anApproval(6, again), revoked], again).decision, 'Approve');
    assert.equal(decide([revoked], again).decision, 'Pending');
  });

  it('a decision about a call counts for this call with these arguments only', () => {
    const asked = { subject: call('c-1'), contributors: [] };
    assert.equal(decide([anApproval(1, { subject: call('c-1') })], asked).decision, 'Approve');
    assert.equal(decide([anApproval(1, { subject: call('c-2') })], asked).decision, 'Pending');
    assert.equal(decide([anApproval(1, { subject: call('c-1', OTHER) })], asked).decision, 'Pending');
    const revoked = anApproval(2, { decision: 'Revoke', subject: call('c-1'), name: 'revoked' });
    assert.equal(decide([anApproval(1, { subject: call('c-1') }), revoked], asked).decision, 'Revoke');
    assert.equal(decide([anApproval(1), { ...revoked, subject: call('c-2') }]).decision, 'Approve');
  });

  it('the verdict does not depend on the order of the Approvals, and no addition of a revocation approves', () => {
    const approval = fc
      .record({
        second: fc.integer({ min: 0, max: 5 }),
        decision: fc.constantFrom('Approve' as const, 'Deny' as const, 'Revoke' as const),
        nonce: fc.constantFrom(NONCE, NEW_NONCE),
        by: fc.constantFrom('alice', 'bob'),
        name: fc.uuid(),
      })
      .map(({ second, ...change }) => anApproval(second, change));
    fc.assert(
      fc.property(fc.array(approval, { maxLength: 8 }), fc.constantFrom(NONCE, undefined), (approvals, nonce) => {
        const verdict = decide(approvals, { nonce });
        assert.deepEqual(decide([...approvals].reverse(), { nonce }).decision, verdict.decision);
        const revoked = anApproval(6, { decision: 'Revoke', name: 'last' });
        assert.equal(decide([...approvals, revoked], { nonce }).decision, 'Revoke');
        if (verdict.decision === 'Approve') assert.equal(verdict.approval.by, 'alice');
      }),
    );
  });
});
