import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { ApprovalRequest, ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { approvalRecord } from '../../approvals/approval-record.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { PullRequestState } from '../../nats/pull-requests.ts';
import { Cache } from '../kube/cache.ts';
import type { Stored } from '../kube/types.ts';
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

function aRequest(status?: ApprovalRequestStatus): Stored<ApprovalRequest> {
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
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** An operator with one request for tier Shared, and a tool of tier Agent in service. */
function aFixture() {
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
  stores.requests.set(pruneRequest(aRequest()));
  let stored: ApprovalRequestStatus = {};
  const events: string[] = [];
  const client = {
    patch: async (_type: unknown, _ref: unknown, { status }: { status: ApprovalRequestStatus }) => {
      stored = status;
      return aRequest(status);
    },
  };
  const requestsInGit = new GitStates('Request');
  const reconciler = new RequestReconciler({
    ...caches,
    client: client as unknown as RequestDeps['client'],
    clock: new FakeClock(),
    events: {
      record: (_subject, { type, reason }) => void events.push(`${type} ${reason}`),
      [Symbol.asyncDispose]: async () => undefined,
    },
    audit: undefined,
    admissionAge: () => ({ since: new Date(0) }),
    requestsInGit,
  });
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
  const reasons = () => (stored.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  return { reconcile, reasons, events, requestsInGit, deny };
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
