import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anAgentSpec } from './fixtures.ts';
import { grantsWithinPolicy } from './grants.ts';
import { withinParent } from './inheritance.ts';

describe('grants within a policy', () => {
  it('say in words what exceeds what', () => {
    const agent = anAgentSpec({ grants: { network: ['*', 'api.example.com'] } });
    assert.deepEqual(grantsWithinPolicy(agent, {})[0], {
      field: 'spec.grants.network[0]',
      pattern: '*',
      message: 'grants.network "*" exceeds policy "standard" (egress.allow is empty); narrow it or raise the policy',
    });
    assert.deepEqual(
      grantsWithinPolicy(agent, { egress: { allow: ['**.example.com'] } }).map(({ pattern }) => pattern),
      ['*'],
    );
    assert.deepEqual(grantsWithinPolicy(agent, { egress: { allow: ['**'] } }), []);
  });

  it('are compared by language, not by text', () => {
    const agent = anAgentSpec({
      grants: { network: ['*.example.com'] },
      model: { primary: 'openai/gpt-4o', fallbacks: ['a/b'] },
    });
    const policy = { egress: { allow: ['**.EXAMPLE.com:443'] }, models: { allow: ['openai/*', '*/b'] } };
    assert.deepEqual(grantsWithinPolicy(agent, policy), []);
    assert.equal(grantsWithinPolicy(agent, { ...policy, egress: { allow: ['api.example.com'] } }).length, 1);
  });

  it('report what is denied, unknown to the ceiling, or looser', () => {
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

  it('report a pattern nobody can read, of the agent and of the policy', () => {
    const agent = anAgentSpec({ grants: { tools: [' '] }, arguments: [{ tool: 'x', argument: 'a', allow: ['../x'] }] });
    const problems = grantsWithinPolicy(agent, { egress: { allow: ['a.*.com'] } });
    assert.deepEqual(
      problems.map(({ message }) => message),
      [
        'spec.grants.tools " " is not a pattern: character 1: it is empty; see the pattern reference',
        'spec.arguments[0].allow "../x" is not a pattern: character 1: it holds a ".." segment; see the pattern reference',
        'spec.egress.allow of policy "standard" "a.*.com" is not a pattern: character 3: a wildcard may only be the whole first label, as in "*.example.com"; see the pattern reference',
      ],
    );
  });
});

describe('a child within its parent', () => {
  const parent = {
    grants: { tools: ['file_*'], network: ['**.example.com'], memory: { read: ['team.*'] }, messages: ['reviewer'] },
    denyTools: ['file_write'],
    arguments: [{ tool: 'file_*', argument: 'path', allow: ['data/**'] }],
  };

  it('has what its parent has, or less', () => {
    const child = {
      grants: { tools: ['file_read'], network: ['*.example.com'], memory: { read: ['team.facts.*'] } },
      denyTools: ['file_*'],
      arguments: [{ tool: '*', argument: 'path', allow: ['data/in/*', 'data/out/**'] }],
    };
    assert.deepEqual(withinParent(child, parent), []);
    assert.deepEqual(withinParent(parent, parent), []);
  });

  it('gets no grant its parent lacks, drops no denial and loosens no pin', () => {
    const child = {
      grants: { tools: ['*'], network: ['example.org'], memory: { write: ['self.*'] }, shell: ['ls'] },
      arguments: [{ tool: 'file_read', argument: 'path', allow: ['data/**'] }],
    };
    assert.deepEqual(
      withinParent(child, parent).map(({ field, pattern }) => [field, pattern]),
      [
        ['spec.grants.tools', '*'],
        ['spec.grants.network', 'example.org'],
        ['spec.grants.memory.write', 'self.*'],
        ['spec.grants.shell', 'ls'],
        ['spec.denyTools', 'file_write'],
        ['spec.arguments', 'file_*'],
      ],
    );
    const wider = { ...parent, arguments: [{ tool: 'file_*', argument: 'path', allow: ['data/**', 'etc/*'] }] };
    assert.equal(withinParent(wider, parent).length, 1);
  });

  it('may be granted nothing', () => {
    const child = { denyTools: parent.denyTools, arguments: parent.arguments };
    assert.deepEqual(withinParent(child, parent), []);
  });
});
