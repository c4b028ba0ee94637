import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Store } from '../../kube/informer/store.ts';
import {
  type ApprovalSummary,
  pruneApproval,
  pruneToolStatus,
  type ToolServiceStatus,
  WatchedDemotions,
} from './demotions.ts';

const DIGEST = `sha256:${'a'.repeat(64)}` as const;
const OTHER = `sha256:${'b'.repeat(64)}` as const;
let versions = 0;

const meta = (name: string, namespace: string) => ({ name, namespace, resourceVersion: String((versions += 1)) });

function tool(name: string, reason: string, namespace = 'team-a'): ToolServiceStatus {
  const active = reason === 'Verified';
  const condition = { type: 'Active', status: active ? 'True' : 'False', reason, message: 'by alice' } as const;
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  return pruneToolStatus({ metadata: meta(name, namespace), spec: { digest: DIGEST }, status: { active, conditions } });
}

function approval(decision: 'Approve' | 'Deny' | 'Revoke'): ApprovalSummary {
  const promotion = { tool: 'csv_rows', digest: DIGEST, tier: 'Shared' } as const;
  const spec = { decision, nonce: 'n-0123456789abcdef', approvedBy: { username: 'alice' }, subject: { promotion } };
  return pruneApproval({ metadata: meta('word', 'team-a'), spec });
}

describe('the demotions', () => {
  function newDemotions() {
    const [tools, approvals] = [new Store<ToolServiceStatus>(), new Store<ApprovalSummary>()];
    return { tools, approvals, demotions: new WatchedDemotions(tools, approvals) };
  }

  it('a demoted or revoked EmergentTool is out of service, in its namespace only, until its condition changes', () => {
    const { tools, demotions } = newDemotions();
    for (const reason of ['Demoted', 'Revoked']) {
      tools.set(tool('csv-rows', reason));
      assert.match(demotions.reason('team-a', DIGEST) ?? '', /EmergentTool "csv-rows" \((Demoted|Revoked)\): by alice/);
      assert.equal(demotions.reason('team-a', OTHER), undefined);
      assert.equal(demotions.reason('team-b', DIGEST), undefined);
    }
    for (const reason of ['AwaitingVerification', 'Verified']) {
      tools.set(tool('csv-rows', reason));
      assert.equal(demotions.reason('team-a', DIGEST), undefined, reason);
    }
  });

  it('a revoked digest is out of service until a tool with that digest is active again', () => {
    const { tools, approvals, demotions } = newDemotions();
    for (const decision of ['Approve', 'Deny'] as const) {
      approvals.set(approval(decision));
      assert.equal(demotions.reason('team-a', DIGEST), undefined, decision);
    }
    approvals.set(approval('Revoke'));
    assert.equal(demotions.reason('team-a', DIGEST), 'revoked by Approval "word"');
    tools.set(tool('csv-rows', 'AwaitingApproval'));
    assert.equal(demotions.reason('team-a', DIGEST), 'revoked by Approval "word"');
    tools.set(tool('csv-rows', 'Verified'));
    assert.equal(demotions.reason('team-a', DIGEST), undefined);
    tools.set(tool('other', 'Demoted'));
    assert.match(demotions.reason('team-a', DIGEST) ?? '', /EmergentTool "other"/, 'one of two tools is enough');
  });
});
