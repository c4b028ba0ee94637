import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { approvalRecord } from '../../approvals/approval-record.ts';
import type { AuditRecord } from '../../audit/port.ts';
import { ApiError, type KubeClient, type ResourceType } from '../../kube/client/kube-client.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { pruneApproval, type StoredApproval, type StoredRequest } from '../approval/stored-decision.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { RaiseApprovals } from './raise-approvals.ts';

const HOUR_MS = 3_600_000;
const AGENT = {
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'analyst', namespace: 'team-a', uid: 'u-agent', generation: 1 },
  spec: {},
} as unknown as StoredAgent;

/** An operator, and the request of one rise on the API server. */
function aFixture(approvals: TrustPolicySpec['approvals']) {
  const clock = new FakeClock();
  const decisions = new Store<StoredApproval>();
  const audited: AuditRecord[] = [];
  const events: string[] = [];
  let request: StoredRequest | undefined;
  let beforePatch = (): void => undefined;
  const store = (change: object): StoredRequest => {
    const version = String(Number(request?.metadata.resourceVersion ?? 0) + 1);
    const metadata = { uid: 'u-request', generation: 1, ...request?.metadata, resourceVersion: version };
    request = {
      ...request,
      ...change,
      metadata: { ...metadata, ...('metadata' in change ? (change.metadata as object) : {}), resourceVersion: version },
    } as StoredRequest;
    return request;
  };
  const client = {
    get: async ({ plural }: ResourceType) => (plural === 'agents' ? AGENT : request),
    create: async (_type: ResourceType, object: object) => store(object),
    patch: async (
      _type: ResourceType,
      _ref: object,
      patch: { metadata?: { resourceVersion: string }; status: object },
    ) => {
      beforePatch();
      const { resourceVersion } = patch.metadata ?? {};
      if (resourceVersion !== undefined && resourceVersion !== request?.metadata.resourceVersion)
        throw new ApiError(409, 'Conflict', 'it has changed');
      return store({ status: { ...request?.status, ...patch.status } });
    },
  };
  const approvalsOf = new RaiseApprovals({
    client: client as unknown as KubeClient,
    approvals: new Cache([decisions]),
    requests: new Cache([new Store<StoredRequest>()]),
    admissionAge: () => ({ since: new Date(0) }),
    clock,
    audit: { append: async (_namespace, record) => void audited.push(record) },
    events: { record: (_subject, { reason }) => void events.push(reason) },
  });
  const metadata = { name: 'p', namespace: 'team-a', uid: 'u-policy', generation: 1 };
  const policy = { metadata, spec: { approvals } } as unknown as StoredPolicy;
  return {
    clock,
    audited,
    events,
    get request() {
      return request;
    },
    decide: async () =>
      (
        await approvalsOf.decide(
          { agent: AGENT, policy, request: { from: 'standard', level: 'elevated' } },
          NEVER_ABORTED,
        )
      )?.decision,
    answer(decision: 'Approve' | 'Deny'): void {
      assert.ok(request !== undefined);
      const { subject, nonce } = request.spec;
      const own = { name: decision, namespace: 'team-a', creationTimestamp: clock.now().toISOString() };
      const spec = { decision, nonce, subject, approvedBy: { username: 'alice' } };
      const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Approval', metadata: own, spec } as const;
      assert.equal(approvalRecord(object).by, 'alice');
      decisions.set(pruneApproval(object as never));
    },
    /** Another writer changes the request before the next write. */
    race(): void {
      beforePatch = () => {
        beforePatch = () => undefined;
        store({ status: { ...request?.status, announcedSteps: 1 } });
      };
    },
  };
}

describe('the request for a rise of a level', () => {
  it('the timeout of the policy denies it, once, and an Approval that comes later raises nothing', async () => {
    const fixture = aFixture({
      timeout: '1h',
      onTimeout: 'Deny',
      escalation: [{ after: '30m', to: ['group:oncall'] }],
    });
    assert.equal(await fixture.decide(), 'Pending');
    const { expiresAt, onTimeout, escalation } = fixture.request?.spec ?? {};
    assert.deepEqual([expiresAt, onTimeout, escalation?.length], [new Date(HOUR_MS).toISOString(), 'Deny', 1]);
    await fixture.clock.advance(HOUR_MS - 1);
    assert.equal(await fixture.decide(), 'Pending');
    await fixture.clock.advance(1);
    assert.equal(await fixture.decide(), 'TimedOut');
    const { decision, decidedBy, conditions } = fixture.request?.status ?? {};
    assert.deepEqual([decision, decidedBy, conditions?.[0]?.reason], ['Expired', 'policy', 'TimedOut']);
    fixture.answer('Approve');
    assert.equal(await fixture.decide(), 'TimedOut');
    assert.equal(fixture.request?.status?.decision, 'Expired');
    assert.deepEqual(
      fixture.audited.map(({ action, actor, facts }) => [action, actor, facts['decision']]),
      [['approval.decided', 'policy', 'Expired']],
    );
    assert.deepEqual(fixture.events, ['TimedOut']);
  });

  it('no timeout approves it: a policy that approves calls of low risk and one that waits let it wait', async () => {
    for (const approvals of [
      { timeout: '1s', onTimeout: 'Wait' as const },
      { timeout: '1s', byRisk: [{ risk: 'low' as const, onTimeout: 'Approve' as const }] },
    ]) {
      const fixture = aFixture(approvals);
      await fixture.decide();
      await fixture.clock.advance(HOUR_MS);
      assert.equal(await fixture.decide(), 'Pending');
    }
  });

  it('an approver decides it with one record, and the timeout that passes later changes nothing', async () => {
    const fixture = aFixture({ timeout: '1h', onTimeout: 'Deny' });
    await fixture.decide();
    fixture.answer('Approve');
    assert.equal(await fixture.decide(), 'Approve');
    await fixture.clock.advance(2 * HOUR_MS);
    assert.equal(await fixture.decide(), 'Approve');
    assert.deepEqual(
      fixture.audited.map(({ actor, facts }) => [actor, facts['decision']]),
      [['user/alice', 'Approve']],
    );
  });

  it('a request that another writer changed meanwhile is decided by its new version', async () => {
    const fixture = aFixture({ timeout: '1h', onTimeout: 'Deny' });
    await fixture.decide();
    await fixture.clock.advance(HOUR_MS);
    fixture.race();
    assert.equal(await fixture.decide(), undefined);
    assert.equal(fixture.request?.status?.decision, undefined);
    assert.equal(await fixture.decide(), 'TimedOut');
  });
});
