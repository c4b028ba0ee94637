import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import { GITOPS_ANNOTATIONS } from '../../approvals/gitops-annotations.ts';
import { Store } from '../../kube/informer/store.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { Cache } from '../kube/cache.ts';
import { aTool, DIGEST, NONCE } from '../tool/tool.testing.ts';
import { addToolIndexes } from '../tool/tool-index.ts';
import { type ApprovalDeps, ApprovalReconciler } from './approval-reconcile.ts';
import { GitStates } from './git-states.ts';
import { pruneApproval, type StoredApproval, type StoredRequest } from './stored-decision.ts';

const SECOND_MS = 1_000;
/** The first moment of the fake clock. */
const CREATED_AT = new Date(0);

function anApproval(annotations: Record<string, string>, decision: 'Approve' | 'Revoke' = 'Approve') {
  return pruneApproval({
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Approval',
    metadata: {
      name: 'from-git',
      namespace: 'team-a',
      uid: 'u-1',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: CREATED_AT.toISOString(),
      annotations,
    },
    spec: {
      decision,
      nonce: NONCE,
      approvedBy: { username: 'gitops' },
      subject: { promotion: { tool: 'csv_rows', digest: DIGEST, tier: 'Shared' } },
    },
  });
}

/** An operator whose admission policies count from the given time on, and one Approval. */
function aFixture(approval: StoredApproval, since: Date) {
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
  stores.tools.set(aTool({ requestNonce: NONCE }));
  stores.approvals.set(approval);
  const clock = new FakeClock();
  const deleted: unknown[] = [];
  const events: string[] = [];
  let conditions: readonly Condition[] = [];
  const client = {
    delete: async (_type: unknown, { name }: { name: string }, { uid }: { uid: string }) => {
      deleted.push([name, uid]);
      return true;
    },
    patch: async (_type: unknown, _ref: unknown, { status }: { status: { conditions: Condition[] } }) => {
      ({ conditions } = status);
      const annotations = approval.isFromGit ? { ...GITOPS_ANNOTATIONS } : {};
      const metadata = { ...approval.metadata, annotations };
      return {
        ...approval,
        metadata,
        spec: { ...approval.record, approvedBy: { username: approval.record.by } },
        status,
      };
    },
  };
  const revocationsInGit = new GitStates('Revocation');
  const reconciler = new ApprovalReconciler({
    ...caches,
    client: client as unknown as ApprovalDeps['client'],
    clock,
    events: {
      record: (_subject, { reason }) => void events.push(reason),
      written: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    },
    admissionAge: () => ({ since }),
    revocationsInGit,
  });
  const reconcile = () => reconciler.reconcile('team-a/from-git', { signal: NEVER_ABORTED } as never);
  const reasons = () => conditions.map(({ type, reason }) => `${type} ${reason}`);
  return { reconcile, clock, deleted, events, reasons, revocationsInGit };
}

describe('the reconcile of an Approval', () => {
  const late = new Date(CREATED_AT.getTime() + 8 * SECOND_MS);

  it('an Approval from Git that is too early is deleted when the next one counts, and not before', async () => {
    const { reconcile, clock, deleted, events, reasons } = aFixture(anApproval({ ...GITOPS_ANNOTATIONS }), late);
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 8 * SECOND_MS });
    assert.deepEqual([reasons(), deleted], [['Effective CreatedTooEarly'], []]);
    await clock.advance(8 * SECOND_MS);
    assert.deepEqual(await reconcile(), { kind: 'done' });
    assert.deepEqual(deleted, [['from-git', 'u-1']]);
    assert.deepEqual(events, ['CreatedTooEarly', 'CreatedTooEarly']);
  });

  it('an Approval of a user, an Approval that counts, and a revocation are never deleted', async () => {
    const kept = [
      aFixture(anApproval({}), late),
      aFixture(anApproval({ ...GITOPS_ANNOTATIONS }), CREATED_AT),
      aFixture(anApproval({ ...GITOPS_ANNOTATIONS }, 'Revoke'), late),
    ];
    for (const { reconcile, clock, deleted } of kept) {
      await clock.advance(60 * SECOND_MS);
      assert.deepEqual(await reconcile(), { kind: 'done' });
      assert.deepEqual(deleted, []);
    }
  });

  it('the state of a revocation in Git is a condition, and stays while it is not known', async () => {
    const { reconcile, reasons, revocationsInGit, events } = aFixture(anApproval({}, 'Revoke'), CREATED_AT);
    await reconcile();
    assert.deepEqual(reasons(), ['Effective Applied']);
    const state = {
      kind: 'Revocation',
      namespace: 'team-a',
      request: 'from-git',
      requestUid: 'u-1',
      place: '',
      state: 'Open',
      checkedAt: '2031-05-05T12:00:00Z',
    } as const;
    revocationsInGit.update([state]);
    await reconcile();
    assert.deepEqual(reasons(), ['Effective Applied', 'InGit RevocationProposed']);
    revocationsInGit.update([{ ...state, state: 'Merged' }]);
    await reconcile();
    assert.deepEqual(reasons(), ['Effective Applied', 'InGit RevocationRecorded']);
    assert.deepEqual(events, ['Applied', 'RevocationProposed', 'RevocationRecorded']);
  });
});
