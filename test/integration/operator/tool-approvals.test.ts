import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool, ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import {
  agentObject,
  ALICE,
  approval,
  ApprovalsFixture,
  digestOfArtifact,
  GITOPS,
  NAMESPACE,
  promotionOf,
  sharedNameOf,
  sharedObject,
  type Stored,
} from '../../support/operator/approvals-fixture.ts';
import { poll } from '../../support/poll.ts';

const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';

describe('the approval of a tool on a real API server', () => {
  let fixture: ApprovalsFixture;
  const requestOf = (artifact: ToolArtifact): Promise<Stored<ApprovalRequest>> =>
    poll(`a request for ${artifact.name}`, async () => {
      const requests = await fixture.list<ApprovalRequest>('approvalRequests');
      return requests.find(({ spec }) => spec.subject.promotion?.digest === digestOfArtifact(artifact));
    });
  const eventReasons = async (name: string): Promise<string[]> => {
    const events = await fixture.list<{ involvedObject: { name: string }; reason: string }>('events');
    return events.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason }) => reason);
  };

  before(async () => {
    fixture = await ApprovalsFixture.open();
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  it('a verified tool asks for an approval, is shared by it, and a revocation permanently removes both objects', async () => {
    const artifact = anArtifact('life');
    const name = sharedNameOf(artifact);
    const { metadata } = await fixture.agentTool(artifact);
    const request = await requestOf(artifact);
    assert.deepEqual(request.spec.review?.agents, ['analyst']);
    assert.equal(request.spec.review?.object, metadata.name);
    await fixture.reason('emergenttools', metadata.name, 'Shared', 'AwaitingApproval');
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'AwaitingApproval');

    const approved = await fixture.approve(ALICE, promotionOf(artifact), request.spec.nonce, 'life-alice');
    const shared = await fixture.reason('emergenttools', name, 'Active', 'Approved');
    assert.equal(shared.status?.active, true);
    assert.deepEqual(shared.spec.artifact, artifact);
    assert.equal(shared.metadata.ownerReferences, undefined);
    const own = await fixture.reason('emergenttools', metadata.name, 'Active', 'Promoted');
    assert.deepEqual([own.status?.active, own.status?.promotion], [false, 'Promoted']);
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'Approved');
    const decided = await fixture.read<ApprovalRequest>('approvalrequests', request.metadata.name);
    assert.deepEqual([decided?.status?.decision, decided?.status?.decidedBy], ['Approve', 'alice']);
    await poll('an Event of the Shared tool', async () => (await eventReasons(name)).includes('Approved'));

    const revoke = { nonce: request.spec.nonce, name: 'life-revoked', decision: 'Revoke', reason: 'wrong totals' };
    await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(artifact), revoke));
    const revoked = await fixture.reason('emergenttools', name, 'Active', 'Revoked');
    assert.equal(revoked.status?.active, false);
    await fixture.reason('emergenttools', metadata.name, 'Active', 'Revoked');
    await fixture.reason('approvals', approved, 'Effective', 'Withdrawn');

    assert.equal((await fixture.call('DELETE', `emergenttools/${name}`)).status, 200);
    await fixture.mustCreate(GITOPS, sharedObject(artifact, request.spec.nonce));
    await fixture.mustCreate(
      GITOPS,
      approval(GITOPS, promotionOf(artifact), { nonce: request.spec.nonce, name: 'again' }),
    );
    await fixture.reason('approvals', 'again', 'Effective', 'Withdrawn');
    await fixture.reason('emergenttools', name, 'Active', 'Revoked');
  });

  it('a tool and its Approval from Git activate in either order, and only their status is written', async () => {
    for (const toolFirst of [true, false]) {
      const artifact = anArtifact(toolFirst ? 'git_tool' : 'git_approval');
      const tool = sharedObject(artifact, NONCE);
      const decision = approval(GITOPS, promotionOf(artifact), {
        nonce: NONCE,
        name: `${artifact.name.replace('_', '-')}-git`,
      });
      if (toolFirst) {
        await fixture.mustCreate(GITOPS, tool);
        await fixture.reason('emergenttools', tool.metadata.name, 'Active', 'ApprovalMissing');
        await fixture.mustCreate(GITOPS, decision);
      } else {
        await fixture.mustCreate(GITOPS, decision);
        await fixture.reason('approvals', decision.metadata.name, 'Effective', 'SubjectNotFound');
        await fixture.mustCreate(GITOPS, tool);
      }
      const active = await fixture.reason('emergenttools', tool.metadata.name, 'Active', 'Approved');
      await fixture.reason('approvals', decision.metadata.name, 'Effective', 'Applied');
      assert.equal(active.metadata.generation, 1);
      assert.deepEqual(active.spec, tool.spec);
      const writers = active.metadata.managedFields as { manager: string; subresource?: string }[];
      const unexpected = writers.filter(
        ({ manager, subresource }) => manager === 'temper-operator' && subresource !== 'status',
      );
      assert.deepEqual(unexpected, []);
    }
  });

  it('a denial is final for its request, and the tool stays with its agent', async () => {
    const artifact = anArtifact('denied');
    const { metadata } = await fixture.agentTool(artifact);
    const request = await requestOf(artifact);
    const denial = { nonce: request.spec.nonce, name: 'denied-alice', decision: 'Deny', reason: 'not useful' };
    await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(artifact), denial));
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'Denied');
    const tool = await fixture.reason('emergenttools', metadata.name, 'Shared', 'ApprovalDenied');
    assert.deepEqual([tool.status?.active, tool.status?.promotion], [true, 'Rejected']);
    await fixture.mustCreate(
      ALICE,
      approval(ALICE, promotionOf(artifact), { nonce: request.spec.nonce, name: 'denied-late' }),
    );
    await fixture.reason('approvals', 'denied-late', 'Effective', 'Withdrawn');
    assert.equal(await fixture.read('emergenttools', sharedNameOf(artifact)), undefined);
  });

  it('a request whose tool is gone expires, and an Approval of it applies to nothing', async () => {
    const artifact = anArtifact('gone');
    const { metadata } = await fixture.agentTool(artifact);
    const request = await requestOf(artifact);
    assert.equal((await fixture.call('DELETE', `emergenttools/${metadata.name}`)).status, 200);
    await fixture.reason('approvalrequests', request.metadata.name, 'Decided', 'Expired');
    await fixture.approve(ALICE, promotionOf(artifact), request.spec.nonce, 'gone-alice');
    assert.equal(await fixture.read('emergenttools', sharedNameOf(artifact)), undefined);
  });

  it('two agents with one tool make one request', async () => {
    const artifact = anArtifact('twice');
    await fixture.agentTool(artifact);
    await requestOf(artifact);
    const second = await fixture.agentTool(artifact, 'reviewer');
    await fixture.reason('emergenttools', second.metadata.name, 'Shared', 'AwaitingApproval');
    const requests = await fixture.list<ApprovalRequest>('approvalRequests');
    const own = requests.filter(({ spec }) => spec.subject.promotion?.digest === digestOfArtifact(artifact));
    assert.equal(own.length, 1);
  });

  it('an object of tier Agent that no verification wrote is never in service', async () => {
    const artifact = anArtifact('smuggled');
    const object = agentObject(artifact, 'analyst', await fixture.agentUid('analyst'));
    const created = await fixture.mustCreate<EmergentTool>(ALICE, object);
    assert.equal(created.status, undefined);
    const restored = await fixture.read<EmergentTool>('emergenttools', object.metadata.name);
    assert.notEqual(restored?.status?.active, true);
    assert.equal(restored?.metadata.namespace, NAMESPACE);
  });
});
