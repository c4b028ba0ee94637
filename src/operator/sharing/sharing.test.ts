import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import type { StoredRequest } from '../approval/stored-decision.ts';
import { planRequest, type ObservedRequest } from '../approval/request-plan.ts';
import { aTool, DIGEST, NONCE } from '../tool/tool.testing.ts';
import { type ObservedSharing, planSharing, requested } from './sharing.ts';
import { requestObject } from './request-object.ts';

const NOW = new Date('2031-05-05T12:00:00Z');
const HOUR_MS = 3_600_000;
const subject = { promotion: { tool: 'csv_rows', digest: DIGEST, tier: 'Shared' as const } };

function denial(createdAt: string): ApprovalRecord {
  return { name: 'no', createdAt, decision: 'Deny', nonce: NONCE, subject, by: 'alice', reason: 'not useful' };
}

function aRequest(decision?: 'Approve' | 'Deny', nonce = NONCE): StoredRequest {
  const metadata = { name: 'csv-rows-1', namespace: 'team-a', uid: 'u', resourceVersion: '1', generation: 1 };
  const base = {
    apiVersion: 'temper.dev/v1alpha1' as const,
    kind: 'ApprovalRequest' as const,
    metadata: { ...metadata, creationTimestamp: '2031-05-05T11:00:00Z' },
    spec: { type: 'PromoteTool' as const, agent: { name: 'analyst', uid: 'u-1' }, nonce, subject },
  };
  const condition = { type: 'Decided', status: 'True' as const, reason: 'Denied', message: '' };
  if (decision === undefined) return base;
  return { ...base, status: { decision, conditions: [{ ...condition, lastTransitionTime: '2031-05-05T11:30:00Z' }] } };
}

function observe(change: Partial<ObservedSharing> = {}): ObservedSharing {
  return {
    tool: aTool({ tier: 'Agent', agent: 'analyst' }, { status: { active: true } }),
    now: NOW,
    shared: undefined,
    agents: ['analyst'],
    isOldest: true,
    rules: { minAgents: 1, coolDownMs: 24 * HOUR_MS },
    requests: [],
    approvals: [],
    pendingOfAgent: 0,
    nameHolder: undefined,
    inactiveStep: undefined,
    denial: undefined,
    ...change,
  };
}

const reasonOf = (change: Partial<ObservedSharing>): string => {
  const planned = planSharing(observe(change));
  return planned.step === 'stay' ? planned.condition.reason : 'request';
};

describe('the request for tier Shared', () => {
  it('a tool in service requests an approval once, and not while something else has to happen first', () => {
    assert.equal(reasonOf({}), 'request');
    assert.equal(reasonOf({ requests: [aRequest()] }), 'AwaitingApproval');
    assert.equal(reasonOf({ isOldest: false }), 'AwaitingApproval');
    assert.equal(reasonOf({ rules: { minAgents: 2, coolDownMs: 0 } }), 'AgentsMissing');
    assert.equal(reasonOf({ rules: { minAgents: 2, coolDownMs: 0 }, agents: ['analyst', 'clerk'] }), 'request');
    assert.equal(reasonOf({ inactiveStep: 'split' }), 'DependencyNotShared');
    assert.equal(reasonOf({ nameHolder: 'a built-in tool' }), 'NameTaken');
    assert.equal(reasonOf({ denial: 'the policy is missing' }), 'PolicyDenied');
    const conditions = [{ type: 'Shareable', status: 'False', reason: 'ReportedAnswers', message: 'reported' }];
    const reported = aTool({ tier: 'Agent', agent: 'analyst' }, { status: { active: true, conditions } } as never);
    assert.equal(reasonOf({ tool: reported }), 'NotShareable');
  });

  it('the status that the creation of the request writes is the one with the request in the cache', () => {
    const planned = planSharing(observe({ requests: [aRequest()] }));
    assert.ok(planned.step === 'stay');
    assert.deepEqual(planned.condition, requested('csv-rows-1'));
  });

  it('at most five requests of an agent wait', () => {
    assert.equal(reasonOf({ pendingOfAgent: 4 }), 'request');
    assert.equal(reasonOf({ pendingOfAgent: 5 }), 'TooManyRequests');
  });

  it('a Shared object of the digest replaces the request, in service or not', () => {
    assert.equal(reasonOf({ shared: aTool({}, { status: { active: true } }) }), 'Promoted');
    assert.equal(reasonOf({ shared: aTool() }), 'AwaitingApproval');
  });

  it('after a denial the next request waits for the cool-down, and has another name', () => {
    const denied = { requests: [aRequest('Deny')], approvals: [denial('2031-05-05T11:00:00Z')] };
    const planned = planSharing(observe(denied));
    assert.ok(planned.step === 'stay' && planned.condition.reason === 'ApprovalDenied');
    assert.equal(planned.retryMs, 23 * HOUR_MS);
    assert.match(planned.condition.message, /alice denied it: not useful/);
    assert.equal(reasonOf({ ...denied, now: new Date(NOW.getTime() + 24 * HOUR_MS) }), 'request');
    const nameOf = (attempt: string) =>
      requestObject({
        tool: observe().tool,
        agent: { metadata: { name: 'analyst', uid: 'u-1' } } as never,
        nonce: NONCE,
        attempt,
        agents: ['analyst'],
        replaced: undefined,
        evidence: {},
        times: {},
      }).metadata.name;
    assert.equal(nameOf(' 0'), nameOf(' 0'));
    assert.notEqual(nameOf(' 0'), nameOf(`${NONCE} 1`));
  });
});

describe('a request for tier Shared that timed out', () => {
  const timedOut = (nonce = NONCE, lastTransitionTime = '2031-05-05T11:30:00Z'): StoredRequest => {
    const condition = { type: 'Decided', status: 'True' as const, reason: 'TimedOut', message: '', lastTransitionTime };
    return { ...aRequest(undefined, nonce), status: { decision: 'Expired', conditions: [condition] } };
  };

  it('the next request waits for the cool-down, as after a denial, and another one is never the same', () => {
    const planned = planSharing(observe({ requests: [timedOut()] }));
    assert.ok(planned.step === 'stay' && planned.condition.reason === 'ApprovalDenied');
    assert.match(planned.condition.message, /the policy denied it, because no approver decided in time/);
    assert.equal(planned.retryMs, 23.5 * HOUR_MS);
    const next = { now: new Date(NOW.getTime() + 24 * HOUR_MS) };
    assert.deepEqual(planSharing(observe({ requests: [timedOut()], ...next })), { step: 'request', after: NONCE });
    const both = [timedOut(), timedOut('newer-nonce-0000', '2031-05-05T11:45:00Z')];
    const waits = planSharing(observe({ requests: both }));
    assert.ok(waits.step === 'stay' && waits.retryMs === 23.75 * HOUR_MS);
    const denied = { requests: [timedOut()], approvals: [denial('2031-05-05T11:45:00Z')] };
    const after = planSharing(observe(denied));
    assert.ok(after.step === 'stay' && /alice denied it/.test(after.condition.message));
  });

  it('a request that expired for another reason keeps none from following', () => {
    const expired = { ...aRequest(), status: { decision: 'Expired' as const } };
    assert.equal(reasonOf({ requests: [expired] }), 'request');
  });
});

describe('the decision of a request', () => {
  const approve: ApprovalRecord = { ...denial('2031-05-05T11:30:00Z'), name: 'yes', decision: 'Approve' };
  const decide = (change: Partial<ObservedRequest>) =>
    planRequest({
      request: aRequest(),
      now: NOW,
      verdict: { decision: 'Pending', ignored: [] },
      source: aTool({ tier: 'Agent', agent: 'analyst' }, { status: { active: true } }),
      shared: undefined,
      olderTwin: undefined,
      coolDownMs: 48 * HOUR_MS,
      ...change,
    });
  const outcome = (change: Partial<ObservedRequest>): string => {
    const planned = decide(change);
    return planned.step === 'decide' ? planned.condition.reason : planned.step;
  };

  it('an approval shares the tool before it is recorded, and only while the tool is in service', () => {
    const verdict = { decision: 'Approve' as const, approval: approve };
    const planned = decide({ verdict });
    assert.ok(planned.step === 'decide' && planned.share !== undefined && planned.by === 'alice');
    const shared = aTool({ requestNonce: NONCE });
    const repeated = decide({ verdict, shared });
    assert.ok(repeated.step === 'decide' && repeated.share === undefined, 'the Shared object exists');
    assert.equal(outcome({ verdict, source: undefined }), 'Expired');
    assert.equal(outcome({ verdict, shared: aTool({ requestNonce: 'another-nonce-00' }) }), 'Expired');
    assert.equal(outcome({ verdict, olderTwin: 'csv-rows-0' }), 'Expired');
  });

  it('a denial and a revocation decide it, and a request without a decision waits', () => {
    assert.equal(outcome({ verdict: { decision: 'Deny', approval: denial('') } }), 'Denied');
    assert.equal(outcome({ verdict: { decision: 'Revoke', approval: denial('') }, source: undefined }), 'Revoked');
    assert.equal(outcome({}), 'wait');
  });

  it('its timeout denies a request that no approver decided, and never approves one', () => {
    const spec = { ...aRequest().spec, expiresAt: NOW.toISOString() };
    const overdue = (onTimeout: 'Wait' | 'Deny' | 'Approve', tier: 'Agent' | 'Shared' = 'Shared'): StoredRequest => {
      const about = { promotion: { ...subject.promotion, tier } };
      return { ...aRequest(), spec: { ...spec, onTimeout, subject: about } };
    };
    for (const tier of ['Agent', 'Shared'] as const) {
      const planned = decide({ request: overdue('Deny', tier) });
      assert.ok(planned.step === 'decide' && planned.share === undefined);
      assert.deepEqual([planned.decision, planned.by, planned.actor], ['Expired', 'policy', 'policy']);
      assert.equal(planned.condition.reason, 'TimedOut');
      for (const other of ['Wait', 'Approve'] as const)
        assert.equal(outcome({ request: overdue(other, tier) }), 'wait', other);
      assert.equal(outcome({ request: overdue('Deny', tier), now: new Date(NOW.getTime() - 1) }), 'wait');
    }
    assert.equal(
      outcome({ request: overdue('Deny'), verdict: { decision: 'Approve', approval: approve } }),
      'Approved',
      'what the operator sees first counts',
    );
  });

  it('a request that timed out is final, and stays for the cool-down that it begins', () => {
    const conditions = [
      {
        type: 'Decided',
        status: 'True' as const,
        reason: 'TimedOut',
        message: '',
        lastTransitionTime: NOW.toISOString(),
      },
    ];
    const request = { ...aRequest(), status: { decision: 'Expired' as const, conditions } };
    const at = (hours: number) => ({ request, now: new Date(NOW.getTime() + hours * HOUR_MS) });
    assert.equal(outcome({ ...at(0), verdict: { decision: 'Approve', approval: approve } }), 'keep');
    assert.equal(outcome(at(47)), 'keep');
    assert.equal(outcome(at(48)), 'remove');
  });

  it('a decision is final, and the request is removed a day later', () => {
    const request = aRequest('Deny');
    assert.equal(outcome({ request, verdict: { decision: 'Approve', approval: approve } }), 'keep');
    assert.equal(outcome({ request, now: new Date('2031-05-06T11:29:59Z') }), 'keep');
    assert.equal(outcome({ request, now: new Date('2031-05-06T11:30:00Z') }), 'remove');
  });
});
