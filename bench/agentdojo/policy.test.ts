import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadManifests } from '../../src/api/manifests.ts';
import type { Agent } from '../../src/api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../src/api/v1alpha1/trustpolicy.ts';
import { hostsOfTool, parseServers } from '../../src/mcp/client/read-servers.ts';
import { createDecider } from '../../src/policy/decider.ts';
import type { Effect } from '../../src/policy/types.ts';
import { PATTERN_RULES } from '../../src/policy/patterns/pattern-rules.ts';

/** The actions of tools by their hints, with the decisions in a session without and with words of others. */
const ACTIONS = [
  ['code:read', 'Allow', 'Allow'],
  ['comms:external', 'Allow', 'Escalate'],
  ['code:write', 'Escalate', 'Escalate'],
  ['code:delete', 'Escalate', 'Escalate'],
] as const;

describe('the policy of AgentDojo', () => {
  it('no tool of a suite is denied: what changes something waits for the approver of the user', async () => {
    const { objects, problems } = await loadManifests([join(import.meta.dirname, 'agents.yaml')], {
      patterns: PATTERN_RULES,
    });
    assert.deepEqual(problems, []);
    const [policy, ...agents] = objects.map(({ object }) => object) as [TrustPolicy, ...Agent[]];
    const servers = [{ name: 'suites', category: 'other', url: 'http://127.0.0.1:40000/mcp' }];
    const [server] = parseServers('mcp.yaml', { servers });
    assert.ok(server !== undefined);
    for (const { metadata, spec } of agents) {
      for (const [action, ofClean, ofTainted] of ACTIONS) {
        const request = {
          kind: 'Tool',
          name: `${metadata.name}_tool`,
          category: 'other',
          action,
          forged: false,
        } as const;
        const effectOf = (tainted: boolean): Effect => {
          const decider = createDecider({
            agent: { name: metadata.name, namespace: 'default', spec },
            policy: { name: policy.metadata.name, spec: policy.spec },
            level: 'standard',
            tainted,
            hasPrivateData: tainted,
            workspace: '/workspace',
          });
          return decider.decide({ ...request, ...hostsOfTool(server, { action }), arguments: {} }).effect;
        };
        const decided = [effectOf(false), effectOf(true)];
        assert.deepEqual(decided, [ofClean, ofTainted], `${metadata.name} ${action}`);
      }
    }
  });
});
