import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../test/system/command.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { runCommandLine } from '../command-line.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';

const POLICY = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {level: {initial: restricted, ceiling: restricted}}
`;
const CAPABILITY = `apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: c}
spec:
  type: Tool
  description: Finds.
  tool: {name: file_lists, category: web, inputSchema: {type: object}}
  backend: {mcp: {url: "https://mcp.example.com/mcp", digest: "sha256:${'0'.repeat(64)}"}}
`;

const agentWith = (fields: string): string => `apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: Hi.}
${fields}
---
${POLICY}`;

async function validated(folder: string, text: string): Promise<{ io: FakeTerminal; warnings: string[] }> {
  await writeFile(join(folder, 'set.yaml'), text);
  const io = { ...aTerminal(), cwd: folder };
  assert.equal(await runCommandLine(['validate', '-f', 'set.yaml', '-o', 'json'], io), 0, io.printed());
  const lines = io.printed().trim().split('\n');
  const found = lines.map((line) => JSON.parse(line) as { rule?: string; field?: string; fix?: string });
  const unknown = found.filter(({ rule }) => rule === 'unknown-tool');
  return { io, warnings: unknown.map(({ field, fix }) => `${field} ${fix?.split('"')[1]}`) };
}

const NAMES = '{tools: [file_raed, "file_*", FILE_READ, csv_rows, crm_lookup]}';
const MISTYPED = `  grants: ${NAMES}
  denyTools: [shel_exec, nothing_like_this]
  toolSettings: [{name: text_serach, timeout: 5s}]
  hooks: [{events: [ToolCall], tool: memory_lst}]`;

describe('the names of tools in manifests', () => {
  it('a mistyped name gives a warning with the nearest tool, and other unknown names give none', async () => {
    await using folder = await temporaryFolder();
    const { warnings } = await validated(folder.path, agentWith(MISTYPED));
    assert.deepEqual(warnings, [
      'spec.grants.tools[0] file_read',
      'spec.denyTools[0] shell_exec',
      'spec.toolSettings[0].name text_search',
      'spec.hooks[0].tool memory_list',
    ]);
  });

  it('a tool of the manifests or of the state folder gives no warning, and is suggested', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    const forged = { spec: { artifact: { name: 'file_reads' } } };
    await fileRecordStore(join(path, '.temper')).put('tools', 'file-reads-abc', forged);
    const set = `${agentWith('  grants: {tools: [file_reads, file_lists, file_readz]}')}---\n${CAPABILITY}`;
    assert.deepEqual((await validated(path, set)).warnings, ['spec.grants.tools[2] file_read']);
    const near = agentWith('  grants: {tools: [file_raeds]}');
    assert.deepEqual((await validated(path, near)).warnings, ['spec.grants.tools[0] file_reads']);
  });

  it('temper run prints the warning, and runs the agent', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    await writeFile(join(path, 'agent.yaml'), agentWith('  grants: {tools: [file_raed]}'));
    await writeFile(join(path, 'script.yaml'), 'rules:\n  - when: {lastUser: hello}\n    answer: {text: Done.}\n');
    const io = { ...aTerminal(), cwd: path, environment: { XDG_CONFIG_HOME: join(path, 'config') } };
    const words = ['run', '-f', 'agent.yaml', '-m', 'hello', '--model-script', 'script.yaml', '--state', 'state'];
    assert.equal(await runCommandLine(words, io), 0, io.errors());
    assert.match(io.errors(), /warning: unknown-tool: .*"file_raed"[^]*→ did you mean "file_read"\?/);
  });
});
