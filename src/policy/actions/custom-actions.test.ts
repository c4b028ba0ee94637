import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool, type SnapshotChange } from '../policy.testing.ts';
import type { PolicyRequest } from '../types.ts';

const REFUND = 'example.com/crm:refund';
const refund = aTool({ name: 'refund', category: 'other', action: REFUND, arguments: { order: '1' } });
const OPEN: TrustPolicySpec = { autonomy: 'Full', level: { ceiling: 'elevated' } };

function outcome(request: PolicyRequest, policy: TrustPolicySpec, change: SnapshotChange = {}): string {
  const { effect, rule, risk } = createDecider(
    aSnapshot({ level: 'elevated', policy: { ...OPEN, ...policy }, ...change }),
  ).decide(request);
  return `${effect} ${rule} ${risk}`;
}

describe('custom actions', () => {
  it('a tool with a custom action that the policy does not register is denied, whatever the policy allows', () => {
    assert.equal(outcome(refund, {}), 'Deny action.unknown high');
    assert.equal(outcome(refund, { actions: [{ name: 'example.com/crm:note' }] }), 'Deny action.unknown high');
  });

  it('a registered custom action has high risk, and waits for an approver unless autonomy is Full', () => {
    const actions = [{ name: REFUND }];
    assert.equal(outcome(refund, { actions }), 'Allow grant.tools high');
    assert.equal(outcome(refund, { actions, autonomy: 'Semi' }), 'Escalate autonomy high');
    assert.equal(outcome(refund, { actions, autonomy: 'Semi', rules: { allow: [REFUND] } }), 'Escalate autonomy high');
  });

  it('rules.allow exempts a custom action of low or medium risk, by its name or its category', () => {
    const actions = [{ name: REFUND, base: 'memory:read', risk: 'low' as const }];
    for (const entry of [REFUND, 'example.com/crm']) {
      assert.equal(outcome(refund, { actions, autonomy: 'Semi', rules: { allow: [entry] } }), 'Allow grant.tools low');
    }
    assert.equal(outcome(refund, { actions, autonomy: 'Semi' }), 'Escalate autonomy low');
  });

  it('rules that name a custom action or its category deny it or ask an approver', () => {
    const actions = [{ name: REFUND }];
    for (const entry of [REFUND, 'example.com/crm']) {
      assert.equal(outcome(refund, { actions, rules: { deny: [entry] } }), 'Deny rules.deny high');
      const waits = { actions, rules: { requireApproval: [entry] } };
      assert.equal(outcome(refund, waits), 'Escalate rules.requireApproval high');
      const byLevel = { actions, constraints: { requireApproval: [entry] } };
      assert.equal(outcome(refund, byLevel), 'Escalate constraint.approval high');
    }
  });

  it('the rules about the base of a custom action apply to it', () => {
    const based = (base: string) => [{ name: REFUND, base, risk: 'critical' as const }];
    assert.equal(outcome(refund, { actions: based('db:admin') }), 'Deny deny.action critical');
    assert.equal(outcome(refund, { actions: based('db:mutate'), rules: { deny: ['db'] } }), 'Deny rules.deny critical');
    const pushes = { actions: based('vcs:push'), constraints: { git: 'LocalOnly' as const } };
    assert.equal(outcome(refund, pushes), 'Deny constraint.git critical');
  });

  it('a custom action without a base may send anything: it needs the network, and an approver in a session with private data', () => {
    const actions = [{ name: REFUND }];
    assert.equal(outcome(refund, { actions, constraints: { network: 'None' } }), 'Deny constraint.network high');
    const tainted = { tainted: true, hasPrivateData: true };
    assert.equal(outcome(refund, { actions }, tainted), 'Escalate private.network high');
    const card = { ...refund, arguments: { note: 'card 4111 1111 1111 1111' } };
    assert.equal(outcome(card, { actions }), 'Escalate detector.data-leak high');
  });

  it('a policy gives custom actions to tools, which keep their own', () => {
    const read = aTool({ arguments: { path: 'payroll.csv' } });
    const actions = [{ name: 'example.com/hr:read', base: 'code:read', risk: 'critical' as const, tools: ['file_*'] }];
    assert.equal(outcome(read, { actions, autonomy: 'Semi' }), 'Escalate autonomy critical');
    assert.equal(outcome(read, { actions, rules: { deny: ['example.com/hr'] } }), 'Deny rules.deny critical');
    assert.equal(outcome(read, { actions, rules: { deny: ['code:read'] } }), 'Deny rules.deny critical');
    const other = aTool({ name: 'text_search' });
    assert.equal(outcome(other, { actions, autonomy: 'Semi' }), 'Allow grant.tools low');
  });

  it('a rule with a custom action that is not registered makes the policy invalid', () => {
    assert.equal(outcome(aTool(), { rules: { allow: [REFUND] } }), 'Deny policy.invalid high');
    const misspelt = { actions: [{ name: REFUND }], rules: { deny: ['example.com/crn'] } };
    assert.equal(outcome(aTool(), misspelt), 'Deny policy.invalid high');
  });
});
