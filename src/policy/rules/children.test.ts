import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { PolicyRequest } from '../types.ts';

interface Of {
  agent?: Partial<AgentSpec>;
  policy?: TrustPolicySpec;
  generation?: number;
  tainted?: boolean;
}

function outcome(request: PolicyRequest, { generation = 0, ...change }: Of = {}): string {
  const { effect, rule } = createDecider({ ...aSnapshot(change), generation }).decide(request);
  return `${effect} ${rule}`;
}

const OWN: PolicyRequest = { kind: 'Spawn' };
const COPY: PolicyRequest = { kind: 'Spawn', template: 'worker-csv' };
const inherit = { children: { inherit: true } };

describe('starting and ending child agents', () => {
  it('an agent writes manifests of children only with children.inherit', () => {
    assert.equal(outcome(OWN), 'Deny grant.spawn');
    assert.equal(outcome(OWN, { agent: { grants: { spawn: ['*'] } } }), 'Deny grant.spawn');
    assert.equal(outcome(OWN, { agent: inherit }), 'Allow grant.spawn');
  });

  it('an agent copies only templates that its grant and its policy name', () => {
    assert.equal(outcome(COPY, { agent: inherit }), 'Deny grant.spawn');
    const agent = { grants: { spawn: ['worker-*'] } };
    assert.equal(outcome(COPY, { agent }), 'Allow grant.spawn');
    assert.equal(outcome(COPY, { agent, policy: { children: { templates: ['other'] } } }), 'Deny policy.templates');
    assert.equal(outcome(COPY, { agent, policy: { children: { templates: ['worker-csv'] } } }), 'Allow grant.spawn');
  });

  it('an agent of the last generation starts and ends no agent, and does not see the tools that do', () => {
    const spawn = aTool({ name: 'agent_spawn', category: 'communication', action: 'org:hire' });
    const agent = { grants: { tools: ['*'], spawn: ['*'], kill: ['*'] }, ...inherit };
    const policy: TrustPolicySpec = { autonomy: 'Full', children: { generations: 2 } };
    assert.equal(outcome(spawn, { agent, policy, generation: 0 }), 'Allow grant.tools');
    for (const request of [spawn, OWN, COPY, { kind: 'Kill' as const, agent: 'x', child: true }])
      assert.equal(outcome(request, { agent, policy, generation: 1 }), 'Deny children.generation');
    assert.equal(outcome(OWN, { agent, policy: {}, generation: 3 }), 'Allow grant.spawn');
    assert.equal(outcome(OWN, { agent, policy: {}, generation: 4 }), 'Deny children.generation');
  });

  it('an agent ends its own children, and others only by grants.kill', () => {
    assert.equal(outcome({ kind: 'Kill', agent: 'x', child: true }), 'Allow grant.kill');
    assert.equal(outcome({ kind: 'Kill', agent: 'x' }), 'Deny grant.kill');
    assert.equal(outcome({ kind: 'Kill', agent: 'x' }, { agent: { grants: { kill: ['x'] } } }), 'Allow grant.kill');
  });

  it('an agent may message its own children without a grant', () => {
    assert.equal(outcome({ kind: 'Message', agent: 'x', child: true }), 'Allow grant.messages');
    assert.equal(outcome({ kind: 'Message', agent: 'x' }), 'Deny grant.messages');
  });

  it('a tainted session starts no child where it may send no message', () => {
    const policy: TrustPolicySpec = { tainted: { deny: ['message'] } };
    assert.equal(outcome(OWN, { agent: inherit, policy, tainted: true }), 'Deny tainted.message');
    assert.equal(outcome(OWN, { agent: inherit, policy }), 'Allow grant.spawn');
  });

  it('a tainted session writes no manifest of a child, and copies templates unless the policy denies it', () => {
    const agent = { grants: { spawn: ['*'], kill: ['*'] }, ...inherit };
    const denied: TrustPolicySpec = { tainted: { deny: ['spawn'] } };
    const allowing: TrustPolicySpec = { tainted: { deny: [] } };
    assert.equal(outcome(OWN, { agent, policy: allowing, tainted: true }), 'Deny tainted.manifest');
    assert.equal(outcome(COPY, { agent, policy: allowing, tainted: true }), 'Allow grant.spawn');
    assert.equal(outcome(COPY, { agent, policy: denied, tainted: true }), 'Deny tainted.spawn');
    const kill: PolicyRequest = { kind: 'Kill', agent: 'x', child: true };
    assert.equal(outcome(kill, { agent, policy: denied, tainted: true }), 'Deny tainted.spawn');
    assert.equal(outcome(kill, { agent, policy: denied }), 'Allow grant.kill');
    const tool = aTool({ name: 'agent_kill', category: 'communication', action: 'comms:internal' });
    assert.equal(outcome(tool, { agent, policy: denied, tainted: true }), 'Deny tainted.spawn');
  });

  it('starting a child needs an approver under autonomy Semi, unless the policy allows org:hire', () => {
    const spawn = aTool({ name: 'agent_spawn', category: 'communication', action: 'org:hire' });
    const agent = { grants: { tools: ['*'] }, ...inherit };
    assert.equal(outcome(spawn, { agent }), 'Escalate autonomy');
    assert.equal(outcome(spawn, { agent, policy: { rules: { allow: ['org:hire'] } } }), 'Allow grant.tools');
    assert.equal(outcome(spawn, { agent: { grants: { tools: ['*'] } } }), 'Deny level.category');
  });
});
