import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadManifests } from '../../api/manifests.ts';
import { TOOLS_OF_GRANTS } from '../../api/checks/warnings.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-warnings-'));
});
after(() => rm(folder, { recursive: true, force: true }));

/** The rules and fields of the warnings about an agent under a policy. */
async function warningsOf(agent: string, policy: string, prompt = '{system: hello}'): Promise<string[]> {
  const text = `apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  trustPolicyRef: {name: p}
  model: {primary: x/y}
  prompt: ${prompt}
${agent}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec:
${policy}
`;
  await writeFile(join(folder, 'set.yaml'), text);
  const { problems, warnings } = await loadManifests([join(folder, 'set.yaml')], { patterns: PATTERN_RULES });
  assert.deepEqual(problems, []);
  return warnings.map(({ rule, field }) => `${rule} ${field}`);
}

const FORGES = '  forge: {enabled: true}';

describe('warnings about manifests', () => {
  it('a warning names each category of a custom level that its base does not open', async () => {
    const constraints =
      '{files: Workspace, network: None, git: LocalOnly, code: Isolated, terminal: None, requireApproval: []}';
    const level = (base: string, categories: string): string =>
      `  levels: [{name: mine, base: ${base}, categories: [${categories}], constraints: ${constraints}}]`;
    assert.deepEqual(await warningsOf('', level('restricted', 'file_system, database, web, terminal')), [
      'level-category spec.levels[0].categories[1]',
      'level-category spec.levels[0].categories[3]',
    ]);
    assert.deepEqual(await warningsOf('', level('elevated', 'database, mcp, other')), []);
    assert.deepEqual(await warningsOf('', level('sandboxed', 'memory, communication')), []);
  });

  it('a warning names grants that the constraints of the agent take away', async () => {
    const agent = (constraints: string): string =>
      `  grants: {tools: [shell_exec], network: [api.example.com], shell: [wc]}\n  constraints: ${constraints}`;
    const policy = '  egress: {allow: [api.example.com]}';
    assert.deepEqual(await warningsOf(agent('{network: None, terminal: None}'), policy), [
      'grant-constrained spec.grants.network',
      'grant-constrained spec.grants.shell',
    ]);
    assert.deepEqual(await warningsOf(agent('{network: Allowlist, git: LocalOnly}'), policy), []);
  });

  it('a warning names the grants of programs that open more than they say', async () => {
    const shell = (...patterns: string[]): string =>
      `  grants: {tools: [shell_exec], shell: [${patterns.map((pattern) => JSON.stringify(pattern)).join(', ')}]}`;
    assert.deepEqual(await warningsOf(shell('grep *', 'ls', 'wc -l *'), '  models: {}'), []);
    const opening = ['python3.13 *', 'bash -c *', 'node', 'find . *', 'git log *', '*', 'py* x', '/bin/ls'];
    const expected = opening.map((_, index) => `shell-grant spec.grants.shell[${index}]`);
    assert.deepEqual(await warningsOf(shell(...opening), '  models: {}'), expected);
    const unused = '  grants: {tools: [file_read], shell: [ls], environment: [LANG]}';
    assert.deepEqual(await warningsOf(unused, '  models: {}'), [
      'grant-without-tool spec.grants.shell',
      'grant-without-tool spec.grants.environment',
    ]);
  });

  it('a warning names a Capability of an MCP server without a digest', async () => {
    const tool = 'tool: {name: find, category: web, inputSchema: {type: object}}';
    const warnings = async (digest: string): Promise<string[]> => {
      const backend = `backend: {mcp: {url: "https://mcp.example.com/mcp"${digest}}}`;
      const spec = `{type: Tool, description: Finds., ${tool}, ${backend}}`;
      const text = `{apiVersion: temper.dev/v1alpha1, kind: Capability, metadata: {name: c}, spec: ${spec}}`;
      await writeFile(join(folder, 'capability.yaml'), text);
      const loaded = await loadManifests([join(folder, 'capability.yaml')]);
      assert.deepEqual(loaded.problems, []);
      return loaded.warnings.map(({ rule, field }) => `${rule} ${field}`);
    };
    assert.deepEqual(await warnings(''), ['mcp-digest spec.backend.mcp']);
    assert.deepEqual(await warnings(`, digest: "sha256:${'0'.repeat(64)}"`), []);
  });

  it('a warning names an agent that may forge under a policy that accepts none of its tools', async () => {
    assert.deepEqual(await warningsOf(FORGES, '  models: {allow: ["x/*"]}'), ['judge-missing spec.forge.enabled']);
    const own = '  models: {allow: ["x/*"], judge: x/y}';
    assert.deepEqual(await warningsOf(FORGES, own), ['judge-is-author spec.forge.enabled']);
    const permitted = '  models: {allow: ["x/*"], judge: x/y, judgeMayBeAuthor: true}';
    assert.deepEqual(await warningsOf(FORGES, permitted), []);
    assert.deepEqual(await warningsOf('', own), []);
  });

  it('a warning names a grant that no granted tool uses', async () => {
    const policy = '  models: {allow: ["x/*"], judge: z/z}';
    const grants = (tools: string): string =>
      `  grants: {tools: [${tools}], memory: {read: ["self.*"], write: ["self.*"]}, messages: [other]}`;
    assert.deepEqual(await warningsOf(grants('file_read'), policy), [
      'grant-without-tool spec.grants.memory.read',
      'grant-without-tool spec.grants.memory.write',
      'grant-without-tool spec.grants.messages',
    ]);
    assert.deepEqual(await warningsOf(grants('memory_search, agent_*'), policy), [
      'grant-without-tool spec.grants.memory.write',
    ]);
    assert.deepEqual(await warningsOf(grants('"**"'), policy), []);
    assert.deepEqual(await warningsOf('  grants: {tools: [file_read]}', policy), []);
  });

  it('a grant to read the memory is used by the context of the agent', async () => {
    const policy = '  models: {allow: ["x/*"], judge: z/z}';
    const grants = '  grants: {tools: [file_read], memory: {read: ["self.*"]}}';
    assert.deepEqual(await warningsOf(grants, policy), ['grant-without-tool spec.grants.memory.read']);
    assert.deepEqual(await warningsOf(grants, policy, '{system: x, context: {memory: [self.a]}}'), []);
  });

  it('every tool that the warnings name is built in', () => {
    const names = builtInDescriptors().map(({ name }) => name);
    for (const tool of Object.values(TOOLS_OF_GRANTS).flat()) assert.ok(names.includes(tool), tool);
  });

  it('a manifest with fields for clusters alone has no warning', async () => {
    const agent = '  sandbox: {class: gvisor, workspace: {size: 1Gi}}\n  idle: {scaleToZeroAfter: 5m}';
    assert.deepEqual(await warningsOf(agent, '  quotas: {cpu: "8", memory: 16Gi}'), []);
  });
});
