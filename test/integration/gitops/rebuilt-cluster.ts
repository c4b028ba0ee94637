import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Approval } from '../../../src/api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../src/api/v1alpha1/emergenttool.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { reviewOfObjects } from '../../../src/review/gitops/review-of-objects.ts';
import { pullRequestDraft } from '../../../src/review/pull-requests/draft.ts';
import { openPullRequest } from '../../../src/review/pull-requests/open-pull-request.ts';
import type { PullRequestServer } from '../../../src/review/pull-requests/port.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import type { GiteaRepository } from '../../support/gitops/gitea-repository.ts';
import { GitOpsController } from '../../support/gitops/gitops-controller.ts';
import {
  ALICE,
  approval,
  ApprovalsFixture,
  digestOfArtifact,
  GITOPS,
  NAMESPACE,
  promotionOf,
  sharedNameOf,
  type Stored,
} from '../../support/operator/approvals-fixture.ts';
import { poll } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

/** A repository on a real server. */
export interface GitHost {
  readonly server: PullRequestServer;
  readonly repository: GiteaRepository;
}

const ARTIFACT = anArtifact('rebuilt');
const NAME = sharedNameOf(ARTIFACT);
const PLACE = { branch: 'main', path: 'rebuilt' };

const kubeconfigOf = ({ apiServer }: ApprovalsFixture): string => apiServer.plane.kubeconfig;
const op = () => ({ signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' });

function syncUntil(
  controller: GitOpsController,
  cluster: ApprovalsFixture,
  reason: string,
): Promise<Stored<EmergentTool>> {
  const what = `the tool with reason ${reason}`;
  return controller.applyUntil(kubeconfigOf(cluster), what, () => toolWith(cluster, reason));
}

async function toolWith(cluster: ApprovalsFixture, reason: string): Promise<Stored<EmergentTool> | undefined> {
  const found = await cluster.read<EmergentTool>('emergenttools', NAME);
  const active = found?.status?.conditions?.find(({ type }) => type === 'Active');
  return active?.reason === reason ? found : undefined;
}

/** The pull request of what the cluster knows about the tool, merged. */
async function merged(cluster: ApprovalsFixture, { server, repository }: GitHost, nonce: string): Promise<void> {
  const [tools, approvals] = await Promise.all([
    cluster.list<EmergentTool>('emergentTools'),
    cluster.list<Approval>('approvals'),
  ]);
  const found = tools.find(({ spec }) => spec.digest === digestOfArtifact(ARTIFACT));
  assert.ok(found !== undefined);
  const decided = { namespace: NAMESPACE, nonce, approvedBy: GITOPS.user };
  const draft = pullRequestDraft(reviewOfObjects({ tool: found, tools, approvals }, decided), PLACE);
  await repository.merge((await openPullRequest(server, draft, op())).number);
}

/** No writer but the account that applies Git has a field of the object, but for its status. */
function assertOwnedByGit({ metadata }: Stored<EmergentTool>): void {
  const writers = (metadata.managedFields ?? []) as { manager: string; subresource?: string }[];
  const others = writers.filter(
    ({ manager, subresource }) => manager === 'temper-operator' && subresource !== 'status',
  );
  assert.deepEqual(others, []);
}

/** Removes every object of the API group, as a new etcd would. Only etcd can: Approvals cannot be deleted. */
async function forgetObjects({ apiServer }: ApprovalsFixture): Promise<void> {
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  const body = {
    key: encoded('/registry/temper.dev/emergenttools/'),
    range_end: encoded('/registry/temper.dev/emergenttools0'),
  };
  const approvals = {
    key: encoded('/registry/temper.dev/approvals/'),
    range_end: encoded('/registry/temper.dev/approvals0'),
  };
  for (const range of [body, approvals]) {
    const response = await fetch(`${apiServer.plane.etcd}/v3/kv/deleterange`, {
      method: 'POST',
      body: JSON.stringify(range),
    });
    assert.equal(response.status, 200);
  }
}

/** A cluster that is rebuilt from Git alone, with both ways to apply. */
export function testRebuiltCluster(hostOf: () => GitHost): void {
  it('a merged tool is active, and active again on a new cluster without a step by hand; a revoked one stays out', async () => {
    const host = hostOf();
    let nonce = '';
    {
      await using cluster = await ApprovalsFixture.open();
      await using controller = await GitOpsController.open(['--server-side', '--field-manager=gitops']);
      await cluster.agentTool(ARTIFACT);
      const request = await poll(
        'the request',
        async () => (await cluster.list<ApprovalRequest>('approvalRequests'))[0],
      );
      nonce = request.spec.nonce;
      await merged(cluster, host, nonce);
      await controller.pull(host.repository, PLACE.path);
      assertOwnedByGit(await syncUntil(controller, cluster, 'Approved'));
      assert.equal(await controller.diff(kubeconfigOf(cluster)), '');
    }
    await using rebuilt = await ApprovalsFixture.open();
    await using controller = await GitOpsController.open([]);
    await controller.pull(host.repository, PLACE.path);
    await controller.apply(kubeconfigOf(rebuilt));
    const early = await rebuilt.list<Approval>('approvals');
    assertOwnedByGit(await syncUntil(controller, rebuilt, 'Approved'));
    assert.equal(await controller.diff(kubeconfigOf(rebuilt)), '');
    const counting = await rebuilt.list<Approval>('approvals');
    assert.deepEqual(
      counting.map(({ metadata }) => metadata.name),
      early.map(({ metadata }) => metadata.name),
      'the same names',
    );

    const revoke = { nonce, name: 'no-more', decision: 'Revoke', reason: 'wrong unit' };
    await rebuilt.mustCreate(ALICE, approval(ALICE, promotionOf(ARTIFACT), revoke));
    await syncUntil(controller, rebuilt, 'Revoked');
    await merged(rebuilt, host, nonce);
    await controller.pull(host.repository, PLACE.path);
    await forgetObjects(rebuilt);
    await poll('an empty cluster', async () => (await rebuilt.list<Approval>('approvals')).length === 0);
    const revoked = await syncUntil(controller, rebuilt, 'Revoked');
    assert.equal(revoked.status?.active, false);
    assert.equal(await controller.diff(kubeconfigOf(rebuilt)), '');
  });
}
