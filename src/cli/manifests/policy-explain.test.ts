import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { aTerminal } from '../io.testing.ts';
import { type PolicyExplainOptions, policyExplain } from './policy-explain.ts';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: standard}
spec:
  level: {initial: restricted, ceiling: standard}
  egress: {allow: ["*.example.com"]}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: standard}
  model: {primary: openai/gpt-4o-mini}
  prompt: {system: You are careful.}
  grants: {tools: [file_read], network: [api.example.com], messages: [reviewer]}
  forge: {enabled: true, modes: [Compose, Sandbox]}
`;

const TOOLS: readonly ToolDescriptor[] = [
  {
    name: 'file_read',
    description: 'Reads a file.',
    inputSchema: {},
    category: 'file_system',
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
  },
];

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-explain-'));
  await writeFile(join(folder, 'all.yaml'), MANIFESTS);
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function explain(question: Partial<PolicyExplainOptions>): Promise<{ code: number; out: string; error: string }> {
  const terminal = aTerminal();
  const code = await policyExplain({ paths: ['all.yaml'], output: 'text', ...question }, TOOLS, {
    ...terminal,
    cwd: folder,
  });
  return { code, out: terminal.printed(), error: terminal.errors() };
}

describe('temper policy explain', () => {
  it('policy explain prints the decision and every evaluated rule, aligned', async () => {
    const { code, out } = await explain({ agent: 'analyst', tool: 'file_read', input: '{"path":"x"}' });
    assert.equal(code, 0);
    const lines = out.split('\n');
    assert.equal(lines[0], 'Allow  by grant.tools  (risk low)');
    assert.equal(lines[3], 'Agent analyst · policy standard · level restricted');
    const rules = lines.slice(4).filter((line) => line !== '');
    assert.ok(rules.length > 15);
    assert.ok(
      rules.some((line) => line.startsWith('  ✓ grant.tools') && line.endsWith('granted by grants.tools "file_read"')),
    );
    assert.equal(new Set(rules.map((line) => line.slice(4).search(/ {2}\S/) >= 0)).size, 1);
  });

  it('policy explain stops at the rule that denies, and exits 1', async () => {
    const { code, out } = await explain({ forge: 'Sandbox', api: ['fetch'] });
    assert.equal(code, 1);
    assert.match(out, /^Deny {2}by level\.forge/);
    assert.match(out.trimEnd().split('\n').at(-1) ?? '', /✗ level\.forge/);
  });

  it('policy explain prints one JSON object', async () => {
    const { out } = await explain({ host: 'api.example.com:443', output: 'json' });
    const answer = JSON.parse(out) as { effect: string; level: string; trace: { rule: string; verdict: string }[] };
    assert.equal(answer.effect, 'Allow');
    assert.equal(answer.level, 'restricted');
    assert.ok(answer.trace.some(({ rule, verdict }) => rule === 'policy.egress' && verdict === 'allowed'));
  });

  it('policy explain supports every kind of request', async () => {
    const expected: readonly (readonly [Partial<PolicyExplainOptions>, string])[] = [
      [{ model: 'openai/gpt-4o' }, 'Deny  by grant.model'],
      [{ message: 'reviewer' }, 'Allow  by grant.messages'],
      [{ memory: 'self.notes', write: true }, 'Deny  by grant.memory'],
      [{ file: 'data/a.csv' }, 'Allow  by constraint.files'],
      [{ promote: 'csv_rows', tier: 'Shared' }, 'Escalate  by promotion.human'],
      [{ promote: 'csv_rows', tainted: true }, 'Deny  by tainted.promote'],
      [{ host: '169.254.169.254:80' }, 'Deny  by grant.network'],
      [{ tool: 'deploy', category: 'deployment', level: 'elevated' }, 'Deny  by grant.tools'],
    ];
    for (const [question, start] of expected) {
      const { out } = await explain(question);
      assert.ok(out.startsWith(start), `${JSON.stringify(question)}: ${out.split('\n', 1)[0]}`);
    }
  });

  it('policy explain decides at the level of the tool category, and at a named level for all categories', async () => {
    const strategy = '  strategy: {type: PerCategory, categories: [{category: web, initial: sandboxed}]}\n';
    await writeFile(join(folder, 'categories.yaml'), MANIFESTS.replace('  egress:', `${strategy}  egress:`));
    const host = { paths: ['categories.yaml'], host: 'api.example.com:443' };
    const { code, out } = await explain(host);
    assert.equal(code, 1);
    assert.match(out, /^Deny {2}by constraint\.network[^]*· level sandboxed$/m);
    assert.equal((await explain({ ...host, level: 'restricted' })).code, 0);
    const other = await explain({ paths: ['categories.yaml'], tool: 'file_read', input: '{"path":"x"}' });
    assert.match(other.out, /^Allow[^]*· level restricted$/m);
  });

  it('policy explain reports invalid questions, and exits 2', async () => {
    const wrong: readonly (readonly [Partial<PolicyExplainOptions>, RegExp])[] = [
      [{}, /ask about exactly one of/],
      [{ tool: 'file_read', host: 'x' }, /exactly one/],
      [{ tool: 'unknown' }, /no built-in tool is named "unknown".*file_read/],
      [{ tool: 'file_read', input: '{"a": 1,}' }, /--input is not JSON: .*position 8/],
      [{ tool: 'x', category: 'web', action: 'code:raed' }, /--action "code:raed".*did you mean code:read\?/],
      [
        { model: 'a/b', level: 'nosuch' },
        /--level "nosuch" is not a level of TrustPolicy "standard"; it has sandboxed/,
      ],
      [{ model: 'a/b', namespace: 'elsewhere' }, /no agent in namespace "elsewhere".*found: analyst/],
      [{ forge: 'sandbox' }, /--forge "sandbox" is not one of Compose, Sandbox/],
      [{ forge: 'Sandbox', api: ['eval'] }, /--api "eval"/],
      [{ host: '::1' }, /brackets/],
      [{ agent: 'other', model: 'a/b' }, /no agent "other".*found: analyst/],
      [{ paths: ['missing.yaml'], model: 'a/b' }, /TEMPER_MANIFEST_UNREADABLE/],
    ];
    for (const [question, message] of wrong) {
      const { code, error } = await explain(question);
      assert.equal(code, 2, JSON.stringify(question));
      assert.match(error, message);
    }
  });
});
