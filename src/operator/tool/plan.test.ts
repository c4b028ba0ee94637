import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { type Activity, type ObservedTool, planActivity } from './plan.ts';
import { aTool, DIGEST, NONCE } from './tool.testing.ts';

const NOW = new Date('2031-05-05T12:00:00Z');
const SINCE = new Date('2031-05-01T00:00:00Z');

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

function observe(change: Partial<ObservedTool> = {}): ObservedTool {
  return {
    tool: aTool({ tier: 'Shared', requestNonce: NONCE }),
    now: NOW,
    approvals: [approval()],
    admission: { since: SINCE },
    operator: 'system:serviceaccount:temper-system:temper-operator',
    contributors: ['agent/analyst'],
    nameHolder: undefined,
    inactiveStep: undefined,
    sharedAs: undefined,
    ownerExists: true,
    deactivation: undefined,
    policyDenial: undefined,
    sourceLost: false,
    foundations: [],
    wasReported: false,
    ...change,
  };
}

const DEACTIVATION = {
  digest: DIGEST,
  tool: 'csv_rows',
  cause: 'Harmful',
  message: '8 of its 8 tasks ended badly',
  since: '2031-05-05T11:00:00Z',
} as const;

const reasonOf = (change: Partial<ObservedTool>): string => {
  const planned = planActivity(observe(change));
  return 'waitMs' in planned ? 'waits' : planned.reason;
};
const shared = (facts: object, metadata: object = {}) =>
  aTool({ tier: 'Shared', requestNonce: NONCE, ...facts }, { metadata });
const AGENT_APPROVAL: Partial<ObservedTool> = { approvals: [] };
const agentTool = (status?: object, change: object = {}) =>
  aTool(
    { tier: 'Agent', agent: 'analyst', requestNonce: undefined, ...change },
    status === undefined ? {} : { status },
  );
const ACTIVE = { active: true };
const inactiveWith = (reason: string) => ({
  active: false,
  conditions: [
    { type: 'Active', status: 'False' as const, reason, message: '', lastTransitionTime: '2031-05-05T00:00:00Z' },
  ],
});

describe('whether a Shared tool is in service', () => {
  it('an Approval of its digest, tier and nonce takes it into service', () => {
    const planned = planActivity(observe()) as Activity;
    assert.deepEqual([planned.status, planned.reason], ['True', 'Approved']);
    assert.match(planned.message, /alice approved it/);
  });

  it('an object without an Approval that counts is not in service, and states why', () => {
    assert.equal(reasonOf({ approvals: [] }), 'ApprovalMissing');
    const early = planActivity(observe({ approvals: [approval({ createdAt: '2031-04-30T00:00:00Z' })] })) as Activity;
    assert.match(early.message, /before the admission policies/);
    const contributor = planActivity(observe({ contributors: ['alice'] })) as Activity;
    assert.match(contributor.message, /contributed to the tool/);
  });

  it('nothing is in service at tier Shared without the admission policies or a nonce', () => {
    assert.equal(reasonOf({ admission: { problem: 'temper-approvals does not exist' } }), 'AdmissionPolicyMissing');
    assert.equal(reasonOf({ tool: shared({ requestNonce: undefined }) }), 'InvalidSpec');
  });

  it('an object with another digest or name than its content, or with an owner, is not in service', () => {
    assert.equal(reasonOf({ tool: shared({ problem: 'its artifact does not match its digest' }) }), 'InvalidSpec');
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'mine', uid: 'u' };
    assert.equal(reasonOf({ tool: shared({}, { ownerReferences: [owner] }) }), 'InvalidSpec');
  });

  it('an Approval makes up for no promotion that rests on reported answers alone', () => {
    const condition = { lastTransitionTime: '2031-05-05T00:00:00Z', message: '' };
    const active = { type: 'Active', status: 'True' as const, reason: 'Verified', ...condition };
    const withheld = { type: 'Shareable', status: 'False' as const, ...condition };
    const verified = (...more: object[]) => agentTool({ active: true, conditions: [active, ...more] });
    const reported = verified({ ...withheld, reason: 'ReportedAnswers' });
    assert.equal(reasonOf({ foundations: [reported] }), 'ReportedAnswers');
    assert.equal(reasonOf({ foundations: [reported, verified()] }), 'Approved', 'another agent has observed answers');
    assert.equal(reasonOf({ foundations: [verified({ ...withheld, reason: 'SourceWithheld' })] }), 'Approved');
    const refused = aTool({ requestNonce: NONCE }, { status: inactiveWith('ReportedAnswers') });
    assert.equal(reasonOf({ tool: refused }), 'ReportedAnswers', 'its agent is deleted');
    assert.equal(reasonOf({ wasReported: true }), 'ReportedAnswers', 'agent and object are deleted and applied again');
    assert.equal(reasonOf({ wasReported: true, foundations: [verified()] }), 'Approved');
    assert.equal(reasonOf({ tool: refused, foundations: [verified()] }), 'Approved');
    const revoked = approval({ decision: 'Revoke', name: 'revoked' });
    assert.equal(reasonOf({ approvals: [revoked], foundations: [reported] }), 'Revoked');
  });

  it('a taken name and an inactive dependency delay it', () => {
    assert.equal(reasonOf({ nameHolder: 'a built-in tool' }), 'NameTaken');
    assert.equal(reasonOf({ inactiveStep: 'split_rows' }), 'DependencyInactive');
  });

  it('a denial and a revocation take it out of service, and the revocation outranks every other reason', () => {
    assert.equal(reasonOf({ approvals: [approval(), approval({ decision: 'Deny', name: 'no' })] }), 'ApprovalDenied');
    const revoked = approval({ decision: 'Revoke', name: 'revoked', reason: 'wrong totals' });
    assert.equal(reasonOf({ approvals: [approval(), revoked] }), 'Revoked');
    assert.equal(reasonOf({ approvals: [revoked], admission: { problem: 'gone' } }), 'Revoked');
    const { operator } = observe();
    assert.equal(reasonOf({ approvals: [{ ...revoked, by: operator }] }), 'Demoted');
    assert.equal(reasonOf({ approvals: [revoked], tool: shared({ problem: 'x' }) }), 'Revoked');
  });
});

describe('whether a tool of tier Agent is in service', () => {
  it('a verified tool stays in service, and a lost status is never taken for a verification', () => {
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool: agentTool(ACTIVE) }), 'Verified');
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool: agentTool() }), 'NotVerified');
    assert.equal(reasonOf({ tool: agentTool() }), 'NotVerified', 'an Approval replaces no verification');
  });

  it('a new object waits for the status of its verification', () => {
    const tool = aTool(
      { tier: 'Agent', agent: 'analyst' },
      { metadata: { creationTimestamp: new Date(NOW.getTime() - 1_000).toISOString() } },
    );
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool }), 'waits');
  });

  it('a reason that ends by itself does not cost the verification', () => {
    for (const reason of ['PolicyDenied', 'Promoted', 'NameTaken', 'OwnerNotFound', 'Deactivated'])
      assert.equal(reasonOf({ ...AGENT_APPROVAL, tool: agentTool(inactiveWith(reason)) }), 'Verified', reason);
    for (const reason of ['Revoked', 'Demoted', 'NotVerified', 'InvalidSpec'])
      assert.equal(reasonOf({ ...AGENT_APPROVAL, tool: agentTool(inactiveWith(reason)) }), 'NotVerified', reason);
  });

  it('a policy that no longer permits it, a Shared twin, a missing agent and a revocation take it out of service', () => {
    const tool = agentTool(ACTIVE);
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool, policyDenial: 'fetch is not allowed.' }), 'PolicyDenied');
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool, sharedAs: 'csv-rows-x' }), 'Promoted');
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool, ownerExists: false }), 'OwnerNotFound');
    assert.equal(reasonOf({ ...AGENT_APPROVAL, tool, deactivation: DEACTIVATION }), 'Deactivated');
    assert.equal(reasonOf({ deactivation: DEACTIVATION }), 'Approved', 'other agents keep a Shared tool');
    assert.equal(reasonOf({ tool, approvals: [approval({ decision: 'Revoke' })] }), 'Revoked');
  });
});
