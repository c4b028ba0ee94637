import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ApprovalRequest, ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { approvalRecord } from '../../approvals/approval-record.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { Controller } from '../../kube/controller/controller.ts';
import { createRateLimiter } from '../../kube/controller/rate-limiter.ts';
import { WorkQueue } from '../../kube/controller/work-queue.ts';
import { Store } from '../../kube/informer/store.ts';
import { RecordingMetrics } from '../../kube/metrics.testing.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { TemperError } from '../../lib/errors.ts';
import type { PullRequestState } from '../../nats/pull-requests.ts';
import { Cache } from '../kube/cache.ts';
import type { Stored, StoredAgent, StoredPolicy } from '../kube/types.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { AuditRecord } from '../../audit/port.ts';
import { INDEX } from '../agent/observe.ts';
import { aTool, DIGEST, NONCE } from '../tool/tool.testing.ts';
import { addToolIndexes } from '../tool/tool-index.ts';
import { GitStates } from './git-states.ts';
import { type RequestDeps, RequestReconciler } from './request-reconcile.ts';
import { pruneRequest, type StoredApproval, type StoredRequest } from './stored-decision.ts';

const METADATA = {
  namespace: 'team-a',
  uid: 'u-1',
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: new Date(0).toISOString(),
};
const SUBJECT = { promotion: { tool: 'csv_rows', digest: DIGEST, tier: 'Shared' as const } };
const FAILED: PullRequestState = {
  kind: 'Request',
  namespace: 'team-a',
  request: 'share-csv-rows',
  requestUid: 'u-1',
  place: '',
  state: 'Failed',
  checkedAt: '2031-01-01T00:00:00.000Z',
  message: 'connection "tools": the server answered 500',
};

function aRequest(
  status?: ApprovalRequestStatus,
  change: Partial<ApprovalRequest['spec']> = {},
): Stored<ApprovalRequest> {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'ApprovalRequest',
    metadata: { ...METADATA, name: 'share-csv-rows' },
    spec: {
      type: 'PromoteTool',
      agent: { name: 'analyst', uid: 'u-agent' },
      nonce: NONCE,
      summary: 'Share it.',
      risk: 'low',
      subject: SUBJECT,
      ...change,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** An operator with one request, for tier Shared unless `change` is about something else, and a tool of tier Agent in service. */
function aFixture(change: Partial<ApprovalRequest['spec']> = {}) {
  const stores = {
    tools: new Store<ReturnType<typeof aTool>>(),
    approvals: new Store<StoredApproval>(),
    requests: new Store<StoredRequest>(),
  };
  const caches = {
    tools: new Cache([stores.tools]),
    approvals: new Cache([stores.approvals]),
    requests: new Cache([stores.requests]),
  };
  addToolIndexes(caches);
  stores.tools.set(aTool({ tier: 'Agent', agent: 'analyst' }, { status: { active: true } }));
  stores.requests.set(pruneRequest(aRequest(undefined, change)));
  let stored: ApprovalRequestStatus = {};
  let failure: Error | undefined;
  let version = 1;
  const clock = new FakeClock();
  const audited: AuditRecord[] = [];
  const events: string[] = [];
  const client = {
    patch: async (_type: unknown, _ref: unknown, { status }: { status: ApprovalRequestStatus }) => {
      if (failure !== undefined) throw failure;
      stored = status;
      const changed = aRequest(status, change);
      version += 1;
      const after = { ...changed, metadata: { ...changed.metadata, resourceVersion: String(version) } };
      stores.requests.set(pruneRequest(after));
      return after;
    },
  };
  const requestsInGit = new GitStates('Request');
  const agents = new Cache([new Store<StoredAgent>()]);
  agents.addIndex(INDEX.uid, ({ metadata }) => [metadata.uid]);
  /** The process of the next leader. */
  const newLeader = () =>
    new RequestReconciler({
      ...caches,
      agents,
      policies: new Cache([new Store<StoredPolicy>()]),
      client: client as unknown as RequestDeps['client'],
      clock,
      events: {
        record: (_subject, { type, reason }) => void events.push(`${type} ${reason}`),
        written: async () => undefined,
        [Symbol.asyncDispose]: async () => undefined,
      },
      audit: { append: async (_namespace, record) => void audited.push(record) },
      admissionAge: () => ({ since: new Date(0) }),
      requestsInGit,
    });
  let reconciler = newLeader();
  const deny = (): void => {
    const metadata = { ...METADATA, name: 'no', creationTimestamp: new Date(60_000).toISOString() };
    const spec = { decision: 'Deny', nonce: NONCE, approvedBy: { username: 'alice' }, subject: SUBJECT } as const;
    const record = approvalRecord({ metadata, spec });
    stores.approvals.set({
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Approval',
      metadata,
      record,
      isFromGit: false,
    });
  };
  const reconcile = () => reconciler.reconcile('team-a/share-csv-rows', { signal: NEVER_ABORTED } as never);
  const restart = (): void => {
    reconciler = newLeader();
  };
  /** What each write of a status throws. */
  const failing = (error: Error | undefined): void => {
    failure = error;
  };
  /** The operator ends before its next write. */
  const kill = async (): Promise<void> => {
    failing(new Error('the operator was killed'));
    await assert.rejects(reconcile());
    failing(undefined);
    restart();
  };
  const reasons = () => (stored.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  const statusOf = () => stored;
  return { reconcile, reasons, events, requestsInGit, deny, clock, audited, restart, failing, kill, statusOf };
}

describe('the reconcile of an ApprovalRequest with a pull request', () => {
  it('a pull request that fails is a condition until it is open, and each change is one Event', async () => {
    const { reconcile, reasons, events, requestsInGit } = aFixture();
    await reconcile();
    assert.deepEqual(reasons(), ['Decided=False AwaitingApproval']);
    requestsInGit.update([FAILED]);
    await reconcile();
    await reconcile();
    assert.deepEqual(reasons().slice(1), ['InGit=False PullRequestFailed', 'Reconciling=True PullRequestFailed']);
    requestsInGit.update([{ ...FAILED, state: 'Open', url: 'https://git.example.com/org/tools/pulls/3' }]);
    await reconcile();
    assert.deepEqual(reasons().slice(1), ['InGit=False PullRequestOpened']);
    requestsInGit.update([{ ...FAILED, state: 'Merged' }]);
    await reconcile();
    assert.deepEqual(reasons().slice(1), ['InGit=True PullRequestMerged']);
    assert.deepEqual(events, [
      'Normal AwaitingApproval',
      'Warning PullRequestFailed',
      'Normal PullRequestOpened',
      'Normal PullRequestMerged',
    ]);
  });

  it('a decided request has no state of a pull request, which no gateway follows any more', async () => {
    const { reconcile, reasons, requestsInGit, deny } = aFixture();
    requestsInGit.update([FAILED]);
    await reconcile();
    assert.equal(reasons().length, 3);
    deny();
    await reconcile();
    assert.deepEqual(reasons(), ['Decided=True Denied']);
  });
});

describe('the failures of an ApprovalRequest', () => {
  const CONFLICT = new ApiError(409, 'Conflict', 'it has changed');
  const UNAVAILABLE = new ApiError(503, 'ServiceUnavailable', 'the API server starts');
  const log = createLogger({
    level: 'error',
    destination: { write: () => undefined },
    secrets: createSecretRedactor(),
  });
  const UNREACHABLE = new TemperError('TEMPER_KUBE_UNREACHABLE', 'no connection', { retry: 'backoff' });

  for (const [what, error, result] of [
    ['a conflict', CONFLICT, 'requeue'],
    ['an error of the API server', UNAVAILABLE, 'error'],
    ['an API server that is away', UNREACHABLE, 'error'],
  ] as const) {
    it(`${what} is no panic, and the request is decided after the backoff`, async () => {
      const { clock, reconcile, deny, failing, statusOf } = aFixture();
      const metrics = new RecordingMetrics();
      const queue = new WorkQueue({ name: 'requests', clock, limiter: createRateLimiter(clock), metrics });
      const newId = (): string => 'r-1';
      const controller = new Controller({ name: 'requests', queue, reconcile, clock, log, metrics, newId });
      deny();
      failing(error);
      await assert.rejects(reconcile(), error);
      controller.start();
      queue.add('team-a/share-csv-rows');
      await clock.advance(0);
      assert.equal(metrics.counts[`controller_runtime_reconcile_total{${result}}`], 1);
      assert.equal(queue.numRequeues('team-a/share-csv-rows'), 1);
      failing(undefined);
      await clock.advance(1_000);
      assert.equal(statusOf().decision, 'Deny');
      assert.equal(await controller.stop(), true);
      assert.equal(metrics.counts['controller_runtime_reconcile_panics_total'], 0);
    });
  }
});

const CALL = {
  call: { agent: 'analyst', agentUid: 'u-agent', tool: 'file_read', argumentsDigest: DIGEST, callId: 'c-1' },
};
const RISE = {
  trust: {
    agent: 'analyst',
    agentUid: 'u-agent',
    level: 'elevated' as const,
    agentSpecDigest: DIGEST,
    policy: 'p',
    policyGeneration: 1,
  },
};
const at = (seconds: number): string => new Date(seconds * 1_000).toISOString();
const STEPS = [
  { at: at(60), to: ['group:oncall'] },
  { at: at(120), to: ['group:leads'] },
];

describe('the times of an ApprovalRequest', () => {
  for (const [type, subject] of [
    ['PromoteTool', SUBJECT],
    ['RaiseTrust', RISE],
    ['ToolCall', CALL],
  ] as const) {
    it(`each step of the escalation of a ${type} is announced once, also when an operator was away at its time`, async () => {
      const fixture = aFixture({ type, subject, escalation: STEPS });
      const steps = () => fixture.events.filter((event) => event === 'Warning ApprovalEscalated').length;
      assert.deepEqual(await fixture.reconcile(), { kind: 'requeueAfter', afterMs: 60_000 });
      assert.equal(steps(), 0);
      fixture.restart();
      await fixture.clock.advance(60_000);
      assert.deepEqual(await fixture.reconcile(), { kind: 'requeueAfter', afterMs: 60_000 });
      await fixture.reconcile();
      fixture.restart();
      await fixture.reconcile();
      assert.equal(steps(), 1);
      await fixture.clock.advance(3_600_000);
      assert.deepEqual(await fixture.reconcile(), { kind: 'done' });
      fixture.restart();
      await fixture.reconcile();
      assert.equal(steps(), 2);
      assert.equal(fixture.statusOf().announcedSteps, 2);
    });

    it(`an operator that ends between the Event of a ${type} and its mark repeats the Event`, async () => {
      const fixture = aFixture({ type, subject, escalation: STEPS });
      await fixture.clock.advance(60_000);
      await fixture.kill();
      await fixture.reconcile();
      const steps = fixture.events.filter((event) => event === 'Warning ApprovalEscalated');
      assert.equal(steps.length, 2);
    });
  }

  it('a call is announced once, whichever leader sees it first, and one that was decided before is not', async () => {
    const fixture = aFixture({ type: 'ToolCall', subject: CALL });
    await fixture.kill();
    for (let leader = 0; leader < 3; leader += 1) {
      await fixture.reconcile();
      fixture.restart();
    }
    assert.deepEqual(fixture.events, ['Normal ApprovalRequested', 'Normal ApprovalRequested']);
    const plain = aFixture({ type: 'ToolCall', subject: CALL });
    await plain.reconcile();
    plain.restart();
    await plain.reconcile();
    assert.deepEqual(plain.events, ['Normal ApprovalRequested']);
    assert.deepEqual(plain.audited, []);
  });

  it('a promotion that no approver decides in time is denied by the policy, once, and its steps end', async () => {
    const fixture = aFixture({ expiresAt: at(90), onTimeout: 'Deny', escalation: STEPS });
    assert.deepEqual(await fixture.reconcile(), { kind: 'requeueAfter', afterMs: 60_000 });
    await fixture.clock.advance(60_000);
    assert.deepEqual(await fixture.reconcile(), { kind: 'requeueAfter', afterMs: 30_000 });
    await fixture.clock.advance(30_000);
    await fixture.reconcile();
    const { decision, decidedBy, announcedSteps } = fixture.statusOf();
    assert.deepEqual([decision, decidedBy, announcedSteps], ['Expired', 'policy', 1]);
    assert.deepEqual(fixture.reasons(), ['Decided=True TimedOut']);
    fixture.deny();
    await fixture.clock.advance(60_000);
    await fixture.reconcile();
    assert.equal(fixture.statusOf().decision, 'Expired', 'the decision is final');
    assert.deepEqual(
      fixture.audited.map(({ action, actor, facts }) => [action, actor, facts['decision']]),
      [['approval.decided', 'policy', 'Expired']],
    );
    assert.deepEqual(fixture.events, ['Normal AwaitingApproval', 'Warning ApprovalEscalated', 'Normal TimedOut']);
  });
});
