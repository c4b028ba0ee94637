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
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
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
  const cached = new Store<StoredRequest>();
  const requests = new Cache([cached]);
  requests.addIndex(TOOL_INDEX.agent, ({ metadata, spec }) => [inNamespace(metadata.namespace, spec.agent.uid)]);
  const audited: AuditRecord[] = [];
  const events: string[] = [];
  let version = 0;
  let created = 0;
  let request: StoredRequest | undefined;
  let beforePatch = (): void => undefined;
  let beforeDelete = (): void => undefined;
  const store = (change: object): StoredRequest => {
    version += 1;
    const given = 'metadata' in change ? (change.metadata as object) : {};
    const metadata = { generation: 1, ...request?.metadata, ...given, resourceVersion: String(version) };
    request = { ...request, ...change, metadata } as StoredRequest;
    return request;
  };
  const client = {
    get: async ({ plural }: ResourceType) => (plural === 'agents' ? AGENT : request),
    create: async (_type: ResourceType, object: object) => {
      if (request !== undefined) throw new ApiError(409, 'AlreadyExists', 'it exists');
      created += 1;
      const stored = store(object);
      return store({ metadata: { ...stored.metadata, uid: `u-request-${created}` } });
    },
    delete: async (_type: ResourceType, _ref: object, { uid, resourceVersion }: StoredRequest['metadata']) => {
      beforeDelete();
      const { metadata } = request ?? {};
      if (metadata?.uid !== uid || metadata.resourceVersion !== resourceVersion) return false;
      request = undefined;
      return true;
    },
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
    requests,
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
    /** As the informer cache sees the request now; a reconcile in which the rise does not apply follows. */
    observe(): void {
      if (request !== undefined) cached.set(request);
    },
    expire: () => approvalsOf.expire(AGENT, [], NEVER_ABORTED),
    answer(decision: 'Approve' | 'Deny'): void {
      assert.ok(request !== undefined);
      const { subject, nonce } = request.spec;
      const own = { name: decision, namespace: 'team-a', creationTimestamp: clock.now().toISOString() };
      const spec = { decision, nonce, subject, approvedBy: { username: 'alice' } };
      const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Approval', metadata: own, spec } as const;
      assert.equal(approvalRecord(object).by, 'alice');
      decisions.set(pruneApproval(object as never));
    },
    withdraw(name: string): void {
      decisions.delete(`team-a/${name}`);
    },
    /** Another writer changes the request before the next deletion. */
    raceDeletion(): void {
      beforeDelete = () => {
        beforeDelete = () => undefined;
        store({});
      };
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

function stored({ request }: { request: StoredRequest | undefined }): StoredRequest {
  assert.ok(request !== undefined);
  return request;
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

  it('one that does not apply any more has a final decision, and a rise that applies again has a new one with its own nonce and times', async () => {
    const fixture = aFixture({ timeout: '1h', onTimeout: 'Deny' });
    await fixture.decide();
    const first = stored(fixture);
    fixture.observe();
    await fixture.expire();
    await fixture.expire();
    const { decision, conditions } = stored(fixture).status ?? {};
    assert.deepEqual([decision, conditions?.map(({ reason }) => reason)], ['Expired', ['Expired']]);
    // An approver who had read it decides too late.
    fixture.answer('Approve');
    await fixture.clock.advance(2 * HOUR_MS);
    assert.equal(await fixture.decide(), 'Pending');
    const next = stored(fixture);
    assert.equal(next.metadata.name, first.metadata.name);
    assert.notEqual(next.metadata.uid, first.metadata.uid);
    assert.notEqual(next.spec.nonce, first.spec.nonce);
    assert.deepEqual([next.status, next.spec.expiresAt], [undefined, new Date(3 * HOUR_MS).toISOString()]);
    fixture.withdraw('Approve');
    fixture.answer('Approve');
    assert.equal(await fixture.decide(), 'Approve');
    assert.equal(fixture.request?.status?.decision, 'Approve');
    assert.deepEqual(
      fixture.audited.map(({ actor, facts }) => [actor, facts['decision']]),
      [
        ['system', 'Expired'],
        ['user/alice', 'Approve'],
      ],
    );
    assert.deepEqual(fixture.events, ['Expired']);
  });

  it('a cache that is behind ends no request that was decided, and none that took its place', async () => {
    const decided = aFixture({});
    await decided.decide();
    decided.observe();
    decided.answer('Approve');
    assert.equal(await decided.decide(), 'Approve');
    await decided.expire();
    assert.equal(decided.request?.status?.decision, 'Approve');

    const replaced = aFixture({});
    await replaced.decide();
    replaced.observe();
    await replaced.expire();
    await replaced.decide();
    await replaced.expire();
    assert.equal(replaced.request?.status, undefined);
  });

  it('an expired one that another writer changed is replaced by the next reconcile', async () => {
    const fixture = aFixture({});
    await fixture.decide();
    fixture.observe();
    await fixture.expire();
    fixture.raceDeletion();
    assert.equal(await fixture.decide(), undefined);
    assert.equal(fixture.request?.status?.decision, 'Expired');
    assert.equal(await fixture.decide(), 'Pending');
    assert.equal(fixture.request?.status?.decision, undefined);
  });

  it('one that timed out or was denied is not replaced, and a deleted denial leaves nothing to approve', async () => {
    const fixture = aFixture({});
    await fixture.decide();
    fixture.answer('Deny');
    assert.equal(await fixture.decide(), 'Deny');
    fixture.observe();
    await fixture.expire();
    fixture.withdraw('Deny');
    fixture.answer('Approve');
    assert.equal(await fixture.decide(), 'Deny');
    assert.equal(fixture.request?.status?.decision, 'Deny');
    assert.deepEqual(
      fixture.audited.map(({ facts }) => facts['decision']),
      ['Deny'],
    );

    const timedOut = aFixture({ timeout: '1h', onTimeout: 'Deny' });
    await timedOut.decide();
    await timedOut.clock.advance(HOUR_MS);
    assert.equal(await timedOut.decide(), 'TimedOut');
    timedOut.observe();
    await timedOut.expire();
    assert.equal(await timedOut.decide(), 'TimedOut');
    assert.equal(timedOut.request?.metadata.uid, 'u-request-1');
  });
});
