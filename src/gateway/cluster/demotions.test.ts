import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalSpec } from '../../api/v1alpha1/approval.ts';
import { Store } from '../../kube/informer/store.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import {
  type ApprovalSummary,
  pruneApproval,
  pruneToolStatus,
  type ToolServiceStatus,
  WatchedDemotions,
} from './demotions.ts';

const DIGEST = `sha256:${'a'.repeat(64)}` as const;
const OTHER = `sha256:${'b'.repeat(64)}` as const;
const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';
let versions = 0;

const meta = (name: string, namespace: string, second = 1) => ({
  name,
  namespace,
  resourceVersion: String((versions += 1)),
  creationTimestamp: new Date(Date.UTC(2031, 0, 1, 0, 0, second)).toISOString(),
});

interface ToolFields {
  readonly namespace?: string;
  readonly tier?: 'Agent' | 'Shared';
  readonly nonce?: string;
  readonly contributors?: string[];
}

function tool(name: string, reason: string, fields: ToolFields = {}): ToolServiceStatus {
  const { namespace = 'team-a', tier = 'Agent', nonce, contributors = [] } = fields;
  const active = reason === 'Verified' || reason === 'Approved';
  const condition = { type: 'Active', status: active ? 'True' : 'False', reason, message: 'by alice' } as const;
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  const spec = { artifact: anArtifact('csv_rows'), digest: DIGEST, tier, contributors };
  return pruneToolStatus({
    metadata: meta(name, namespace),
    spec: nonce === undefined ? spec : { ...spec, requestNonce: nonce },
    status: { active, conditions },
  });
}

function approval(decision: ApprovalSpec['decision'], second = 1, nonce = NONCE, by = 'alice'): ApprovalSummary {
  const promotion = { tool: 'csv_rows', digest: DIGEST, tier: 'Shared' } as const;
  const name = `${decision.toLowerCase()}-${second}`;
  return pruneApproval({
    metadata: meta(name, 'team-a', second),
    spec: { decision, nonce, approvedBy: { username: by }, subject: { promotion } },
  });
}

const agentOf = (namespace: string) => ({ namespace, agentUid: `u-${namespace}` });

function newDemotions(deactivation: (agentUid: string) => string | undefined = () => undefined) {
  const [tools, approvals] = [new Store<ToolServiceStatus>(), new Store<ApprovalSummary>()];
  return { tools, approvals, demotions: new WatchedDemotions(tools, approvals, deactivation) };
}

describe('the demotions', () => {
  it('a demoted or revoked EmergentTool is out of service, in its namespace only, until its condition changes', () => {
    const { tools, demotions } = newDemotions();
    for (const reason of ['Demoted', 'Revoked']) {
      tools.set(tool('csv-rows', reason));
      assert.match(
        demotions.reason(agentOf('team-a'), DIGEST) ?? '',
        /EmergentTool "csv-rows" \((Demoted|Revoked)\): by alice/,
      );
      assert.equal(demotions.reason(agentOf('team-a'), OTHER), undefined);
      assert.equal(demotions.reason(agentOf('team-b'), DIGEST), undefined);
    }
    for (const reason of ['NotVerified', 'Verified']) {
      tools.set(tool('csv-rows', reason));
      assert.equal(demotions.reason(agentOf('team-a'), DIGEST), undefined, reason);
    }
  });

  it('a tool that is deactivated for one agent stays in service for the others of its namespace', () => {
    const { tools, demotions } = newDemotions((uid) => (uid === 'u-liar' ? '9 of its 9 tasks ended badly' : undefined));
    const shared = tool('shared', 'Approved', { tier: 'Shared', nonce: NONCE });
    tools.set(shared);
    const reason = (agentUid: string) => demotions.reason({ namespace: 'team-a', agentUid }, DIGEST);
    assert.equal(reason('u-liar'), 'deactivated for this agent: 9 of its 9 tasks ended badly');
    assert.equal(reason('u-neighbour'), undefined);
  });

  it('a revocation applies when its watch event arrives, although the status says that the tool is in service', () => {
    const { tools, approvals, demotions } = newDemotions();
    const [own, shared] = [tool('own', 'Verified'), tool('shared', 'Approved', { tier: 'Shared', nonce: NONCE })];
    tools.set(own);
    tools.set(shared);
    approvals.set(approval('Approve'));
    assert.deepEqual([demotions.isServed(own), demotions.isServed(shared)], [true, true]);
    approvals.set(approval('Revoke', 2));
    assert.deepEqual([demotions.isServed(own), demotions.isServed(shared)], [false, false]);
    assert.equal(demotions.reason(agentOf('team-a'), DIGEST), 'revoked by Approval "revoke-2"');
    assert.notEqual(demotions.revocations('team-a'), '');
    assert.equal(demotions.revocations('team-b'), '');
  });

  it('a new request with a new nonce takes the digest into service again', () => {
    const { tools, approvals, demotions } = newDemotions();
    const nonce = 'n5r8qXn3Ad9wO2ySu7Zc';
    tools.set(tool('own', 'Revoked'));
    tools.set(tool('shared', 'Approved', { tier: 'Shared', nonce }));
    approvals.set(approval('Revoke', 2));
    assert.match(demotions.reason(agentOf('team-a'), DIGEST) ?? '', /Revoked/);
    approvals.set(approval('Approve', 3, nonce));
    assert.equal(demotions.reason(agentOf('team-a'), DIGEST), undefined);
  });
});

describe('what the gateway serves of tier Shared', () => {
  it('a status alone, an Approval with another nonce, and one of a contributor serve nothing', () => {
    const { tools, approvals, demotions } = newDemotions();
    const shared = tool('shared', 'Approved', { tier: 'Shared', nonce: NONCE });
    tools.set(shared);
    assert.equal(demotions.isServed(shared), false);
    approvals.set(approval('Approve', 1, 'n5r8qXn3Ad9wO2ySu7Zc'));
    assert.equal(demotions.isServed(shared), false);
    approvals.set(approval('Approve', 2));
    assert.equal(demotions.isServed(shared), true);
    tools.set(tool('own', 'Promoted', { contributors: ['alice'] }));
    assert.equal(demotions.isServed(shared), false, 'contributors of every object with the digest count');
    approvals.set(approval('Approve', 3, NONCE, 'bob'));
    assert.equal(demotions.isServed(shared), true);
    approvals.set(approval('Deny', 4));
    assert.equal(demotions.isServed(shared), false);
  });

  it('an object without a nonce or an active status serves nothing', () => {
    const { tools, approvals, demotions } = newDemotions();
    approvals.set(approval('Approve'));
    for (const object of [
      tool('a', 'Approved', { tier: 'Shared' }),
      tool('b', 'ApprovalMissing', { tier: 'Shared', nonce: NONCE }),
    ]) {
      tools.set(object);
      assert.equal(demotions.isServed(object), false, object.metadata.name);
    }
  });
});
