import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anAgentSpec } from './policy.testing.ts';
import { grantsWithinPolicy } from './grants.ts';

describe('grants within a policy', () => {
  it('the messages state which grant exceeds which list', () => {
    const agent = anAgentSpec({ grants: { network: ['*', 'api.example.com'] } });
    assert.deepEqual(grantsWithinPolicy(agent, {})[0], {
      field: 'spec.grants.network[0]',
      pattern: '*',
      message:
        'grants.network "*" exceeds policy "standard" (egress.allow is empty); narrow the grant or extend the policy',
    });
    assert.deepEqual(
      grantsWithinPolicy(agent, { egress: { allow: ['**.example.com'] } }).map(({ pattern }) => pattern),
      ['*'],
    );
    assert.deepEqual(grantsWithinPolicy(agent, { egress: { allow: ['**'] } }), []);
  });

  it('grants are compared as languages, not as text', () => {
    const agent = anAgentSpec({
      grants: { network: ['*.example.com'] },
      model: { primary: 'openai/gpt-4o', fallbacks: ['a/b'] },
    });
    const policy = { egress: { allow: ['**.EXAMPLE.com:443'] }, models: { allow: ['openai/*', '*/b'] } };
    assert.deepEqual(grantsWithinPolicy(agent, policy), []);
    assert.equal(grantsWithinPolicy(agent, { ...policy, egress: { allow: ['api.example.com'] } }).length, 1);
  });

  it('grants that are denied, not covered, or looser are reported', () => {
    const agent = anAgentSpec({
      grants: { tools: ['shell_exec', 'file_*'] },
      forge: { enabled: true, apis: ['fetch'] },
      autonomy: 'Full',
    });
    const problems = grantsWithinPolicy(agent, {
      tools: { deny: ['shell_*', 'file_write'] },
      models: { allow: ['x/*'] },
    });
    assert.deepEqual(
      problems.map(({ field, pattern }) => [field, pattern]),
      [
        ['spec.grants.tools[0]', 'shell_exec'],
        ['spec.model.primary', 'openai/gpt-4o-mini'],
        ['spec.forge.apis[0]', 'fetch'],
        ['spec.autonomy', 'Full'],
      ],
    );
  });

  it('the comparisons of one agent share a budget, beyond which a grant exceeds the policy', () => {
    const heavy = (form: (index: number) => string) => Array.from({ length: 60 }, (_, index) => form(index));
    const network = [...heavy((index) => `*.${'a.'.repeat(100)}${index}.example.com`), 'a.example.org'];
    const allow = ['**.example.org', ...heavy((index) => `**.${'a.'.repeat(60)}b${index}.example.com`)];
    const patterns = grantsWithinPolicy(anAgentSpec({ grants: { network } }), { egress: { allow } });
    assert.equal(patterns.at(-1)?.pattern, 'a.example.org');
    const light = anAgentSpec({ grants: { network: ['a.example.org'] } });
    assert.deepEqual(grantsWithinPolicy(light, { egress: { allow } }), []);
  });

  it('invalid patterns of the agent and the policy are reported', () => {
    const agent = anAgentSpec({ grants: { tools: [' '] }, arguments: [{ tool: 'x', argument: 'a', allow: ['../x'] }] });
    const problems = grantsWithinPolicy(agent, { egress: { allow: ['a.*.com'] } });
    assert.deepEqual(
      problems.map(({ message }) => message),
      [
        'spec.grants.tools " " is not a pattern: character 1: it is empty; see the pattern reference',
        'spec.arguments[0].allow "../x" is not a pattern: character 1: it contains a ".." segment; see the pattern reference',
        'spec.egress.allow of policy "standard" "a.*.com" is not a pattern: character 3: a wildcard may only be the whole first label, as in "*.example.com"; see the pattern reference',
      ],
    );
  });
});
