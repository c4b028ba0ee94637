import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { createDecider } from '../../policy/decider.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { builtInDescriptors } from '../built-in.ts';
import { explainCall } from './explain-call.ts';

const tools = builtInDescriptors();
const spec: AgentSpec = {
  trustPolicyRef: { name: 'p' },
  model: { primary: 'a/b' },
  prompt: { system: 'x' },
  grants: { tools: ['*'], network: ['**', '10.0.0.1'], memory: { read: ['a.*'] }, messages: ['reviewer'] },
};

function explained(request: PolicyRequest, level = 'standard', protectedFolders: readonly string[] = []) {
  const snapshot = {
    agent: { name: 'a', namespace: 'n', spec },
    policy: { name: 'p', spec: { level: { initial: level, ceiling: level }, egress: { allow: ['**', '10.0.0.1'] } } },
    level,
    tainted: false,
    workspace: '/workspace',
  };
  const schemas = createSchemaCompiler();
  return explainCall({ decider: createDecider(snapshot), schemas, snapshot, protectedFolders }, request);
}

function ofCall(name: string, input: string, level?: string): string {
  const tool = tools.find((candidate) => candidate.name === name);
  assert.ok(tool !== undefined);
  const { category, action } = tool;
  const request = {
    kind: 'Tool',
    name,
    category,
    action,
    forged: false,
    arguments: parseUntrustedJson(input),
  } as const;
  const { effect, rule } = explained(request, level);
  return `${effect} ${rule}`;
}

describe('the explanation of a call', () => {
  it('an allowed call shows the checks that follow the policy', () => {
    assert.equal(ofCall('file_read', '{"path":"data/a.csv"}'), 'Allow grant.tools');
    const { trace } = explained({ kind: 'Network', host: 'api.example.com', port: 443 });
    assert.deepEqual(trace.at(-1), {
      rule: 'public-host',
      verdict: 'passed',
      detail: 'the host is not known to be internal',
    });
  });

  it('arguments that break the input schema are denied, as the invoker refuses them', () => {
    assert.equal(ofCall('file_read', '{"file":"a"}'), 'Deny input-schema');
    assert.equal(ofCall('file_read', '{"path":"a","firstLine":0}'), 'Deny input-schema');
  });

  it('a path that a file tool refuses is denied', () => {
    for (const tool of ['file_read', 'file_list', 'text_search']) {
      const rest = tool === 'text_search' ? ',"text":"x"' : '';
      assert.match(ofCall(tool, `{"path":"/etc/passwd"${rest}}`), /^Deny /, tool);
    }
    assert.equal(explained({ kind: 'File', path: '/etc/passwd', access: 'read' }).effect, 'Deny');
    assert.equal(explained({ kind: 'File', path: 'a/b', access: 'read' }).effect, 'Allow');
  });

  it('a path outside the workspace is denied, although the level allows every file', () => {
    assert.equal(explained({ kind: 'File', path: '/etc/passwd', access: 'read' }, 'elevated').rule, 'workspace');
    assert.equal(ofCall('file_read', '{"path":"/etc/passwd"}', 'elevated'), 'Deny workspace');
    assert.equal(ofCall('file_read', '{"path":"data/a.csv"}', 'elevated'), 'Allow grant.tools');
  });

  it('a protected path is denied for each tool of files and for a file, and so is a folder that contains it', () => {
    const closed = ['/workspace/state', '/workspace/held/agent.yaml'];
    const denied = (name: string, input: object): string => {
      const tool = tools.find((candidate) => candidate.name === name) ?? assert.fail(name);
      const { effect, rule } = explained(toolRequest(tool, { ...input }), 'standard', closed);
      return `${effect} ${rule}`;
    };
    for (const path of ['state', 'state/audit/chain', './state//x', 'held/agent.yaml', '/workspace/state/x']) {
      assert.equal(denied('file_read', { path }), 'Deny workspace', path);
      assert.equal(denied('file_write', { path, text: 'x' }), 'Deny workspace', path);
      assert.equal(denied('text_search', { path, text: 'x' }), 'Deny workspace', path);
      assert.equal(denied('file_delete', { path }), 'Deny workspace', path);
      for (const access of ['read', 'write'] as const)
        assert.equal(explained({ kind: 'File', path, access }, 'standard', closed).rule, 'workspace', path);
    }
    assert.equal(denied('file_read', { path: 'statement.txt' }), 'Allow grant.tools');
    assert.equal(denied('file_delete', { path: 'held', recursive: true }), 'Deny workspace');
    assert.notEqual(denied('file_delete', { path: 'data', recursive: true }), 'Deny workspace');
  });

  it('a host that is not public is denied, whatever the patterns grant', () => {
    for (const host of ['localhost', 'kubernetes.default.svc', '10.0.0.1']) {
      assert.equal(explained({ kind: 'Network', host, port: 443 }).rule, 'public-host', host);
    }
  });

  it('a key or a receiver that is not granted is denied, as the tool itself refuses it', () => {
    assert.equal(ofCall('memory_get', '{"key":"a.b"}'), 'Allow grant.tools');
    assert.equal(ofCall('memory_get', '{"key":"b"}'), 'Deny grant.memory');
    assert.equal(ofCall('agent_send', '{"to":"other","text":"x"}'), 'Deny grant.messages');
  });
});
