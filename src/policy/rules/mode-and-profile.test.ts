import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { PolicyRequest } from '../types.ts';

function outcome(request: PolicyRequest, agent: Partial<AgentSpec>): string {
  const { effect, rule } = createDecider(aSnapshot({ agent, policy: { autonomy: 'Full' } })).decide(request);
  return `${effect} ${rule}`;
}

const GRANTS = { tools: ['*'], messages: ['*'], memory: { read: ['*'], write: ['*'] }, network: ['**:*'] };
const forge = { enabled: true };
const write = aTool({ name: 'file_write', action: 'code:write' });

describe('the mode of an agent', () => {
  it('mode Observe allows no tool and no effect, whatever is granted', () => {
    const agent: Partial<AgentSpec> = { mode: 'Observe', grants: GRANTS, forge };
    const requests: PolicyRequest[] = [
      aTool(),
      aTool({ name: 'discover_capabilities', category: 'other' }),
      { kind: 'Forge', mode: 'Compose', apis: [], domains: [], paths: [] },
      { kind: 'Network', host: 'example.com', port: 443 },
      { kind: 'File', path: 'a', access: 'read' },
      { kind: 'Memory', key: 'self.a', access: 'read' },
      { kind: 'Message', agent: 'b' },
    ];
    for (const request of requests) assert.equal(outcome(request, agent), 'Deny mode', request.kind);
    const model = { kind: 'Model' as const, model: 'openai/gpt-4o-mini' };
    assert.equal(outcome(model, agent), 'Allow grant.model');
    assert.equal(createDecider(aSnapshot({ agent })).forgeLimits.allowed, false);
  });

  it('mode Assist allows six tools that read, by name, and no forged tool of that name', () => {
    const agent: Partial<AgentSpec> = { mode: 'Assist', grants: GRANTS, forge };
    const names = ['file_read', 'file_list', 'text_search', 'memory_get', 'memory_search', 'agent_list'];
    for (const name of names) assert.equal(outcome(aTool({ name }), agent), 'Allow grant.tools', name);
    assert.equal(outcome(aTool({ forged: true }), agent), 'Deny mode');
    assert.equal(outcome(write, agent), 'Deny mode');
    assert.equal(outcome({ kind: 'Memory', key: 'self.a', access: 'write' }, agent), 'Deny mode');
    assert.equal(outcome({ kind: 'Memory', key: 'self.a', access: 'read' }, agent), 'Allow grant.memory');
    assert.equal(outcome({ kind: 'Message', agent: 'b' }, agent), 'Deny mode');
  });

  it('mode Full is the default and denies nothing', () => {
    assert.equal(outcome(write, { mode: 'Full' }), 'Allow grant.tools');
    assert.equal(outcome(write, {}), 'Allow grant.tools');
  });
});

describe('the tool profile of an agent', () => {
  it('a profile narrows the grants and grants nothing', () => {
    assert.equal(outcome(write, { toolProfile: 'Minimal' }), 'Deny profile.tools');
    assert.equal(outcome(write, { toolProfile: 'Coding' }), 'Allow grant.tools');
    assert.equal(outcome(write, { toolProfile: 'Full', grants: { tools: ['file_read'] } }), 'Deny grant.tools');
  });

  it('a profile concerns neither what the agent forged itself nor tool discovery', () => {
    const made = aTool({ name: 'csv_rows', forged: true });
    assert.equal(outcome(made, { toolProfile: 'Minimal', forge }), 'Allow grant.tools');
    assert.equal(outcome(made, { toolProfile: 'Minimal' }), 'Deny profile.tools');
    const look = aTool({ name: 'discover_capabilities', category: 'other', action: 'code:read' });
    assert.equal(outcome(look, { toolProfile: 'Minimal' }), 'Allow grant.tools');
  });
});
