import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import type { ApprovalSummary, ToolServiceStatus } from '../cluster/demotions.ts';
import { revokedPromotions } from './revoked-promotions.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const OTHER = `sha256:${'b'.repeat(64)}`;
const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';
const LATER = 'n5r8qXn3Ad9wO2ySu7Zc';

function anApproval(second: number, change: Partial<ApprovalRecord> = {}, digest = DIGEST): ApprovalSummary {
  const name = `${change.decision ?? 'Approve'}-${second}`.toLowerCase();
  const createdAt = new Date(Date.UTC(2031, 0, 1, 0, 0, second)).toISOString();
  const subject = { promotion: { tool: 'csv_rows', digest, tier: 'Shared' as const } };
  const record = { name, createdAt, decision: 'Approve' as const, nonce: NONCE, subject, by: 'alice', ...change };
  return { metadata: { name, namespace: 'team-a', uid: `uid-${name}` }, record };
}

function aTool(requestNonce: string): ToolServiceStatus {
  return {
    metadata: { name: 'csv-rows-1', namespace: 'team-a' },
    spec: { tool: 'csv_rows', digest: DIGEST, tier: 'Shared', requestNonce },
  };
}

const found = (approvals: ApprovalSummary[], tools: ToolServiceStatus[] = [aTool(NONCE)]) =>
  revokedPromotions('team-a', approvals, tools);

describe('the revoked promotions of a namespace', () => {
  it('a revocation or denial of an approved promotion is one, with the nonce of the approval', () => {
    for (const decision of ['Revoke', 'Deny'] as const) {
      const approvals = [anApproval(1), anApproval(5, { decision, by: 'bob', reason: 'wrong unit' })];
      for (const tools of [[aTool(NONCE)], []]) {
        const [one, ...others] = found(approvals, tools);
        assert.equal(others.length, 0);
        assert.deepEqual(
          [one?.tool, one?.digest, one?.nonce, one?.by, one?.reason],
          ['csv_rows', DIGEST, NONCE, 'bob', 'wrong unit'],
        );
        assert.equal(one?.approval.uid, `uid-${decision.toLowerCase()}-5`);
      }
    }
  });

  it('a revocation with another nonce than the approval gets the nonce that withdraws it for all time', () => {
    const revoked = anApproval(5, { decision: 'Revoke', nonce: LATER });
    assert.equal(found([anApproval(1), revoked])[0]?.nonce, NONCE);
  });

  it('a promotion that is in service, was never approved, or is approved again is none', () => {
    assert.deepEqual(found([anApproval(1)]), []);
    assert.deepEqual(found([anApproval(5, { decision: 'Deny' })]), []);
    assert.deepEqual(found([anApproval(5, { decision: 'Revoke' })]), []);
    assert.deepEqual(found([anApproval(1), anApproval(5, { decision: 'Revoke' }, OTHER)]), []);
    const again = [anApproval(1), anApproval(5, { decision: 'Revoke' }), anApproval(9, { nonce: LATER })];
    assert.deepEqual(found(again, [aTool(LATER)]), []);
    assert.deepEqual(found(again, []), []);
  });

  it('an approval of tier Agent is not in Git', () => {
    const agent = { subject: { promotion: { tool: 'csv_rows', digest: DIGEST, tier: 'Agent' as const } } };
    assert.deepEqual(found([anApproval(1, agent), anApproval(5, { decision: 'Revoke', ...agent })], []), []);
  });

  it('the promotion that was revoked last is the first one', () => {
    const revoked = { decision: 'Revoke' as const };
    const approvals = [anApproval(1), anApproval(5, revoked), anApproval(2, {}, OTHER), anApproval(9, revoked, OTHER)];
    assert.deepEqual(
      found(approvals, []).map(({ digest }) => digest),
      [OTHER, DIGEST],
    );
  });
});
