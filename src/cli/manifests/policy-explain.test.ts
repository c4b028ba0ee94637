import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { aTerminal } from '../io.testing.ts';
import { manifestsOf } from './manifests.testing.ts';
import { type PolicyExplainOptions, policyExplain } from './policy-explain.ts';

const MANIFESTS = manifestsOf(
  ['level: {initial: restricted, ceiling: standard}', 'egress: {allow: ["*.example.com"]}'],
  [
    'grants: {tools: [file_read], network: [api.example.com], messages: [reviewer]}',
    'forge: {enabled: true, modes: [Compose, Sandbox]}',
  ],
);

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-explain-'));
  await writeFile(join(folder, 'all.yaml'), MANIFESTS);
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function explain(
  question: Partial<PolicyExplainOptions>,
  environment: Record<string, string> = {},
): Promise<{ code: number; out: string; error: string }> {
  const terminal = aTerminal();
  const code = await policyExplain({ paths: ['all.yaml'], output: 'text', ...question }, [], {
    ...terminal,
    environment: { ...terminal.environment, ...environment },
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

  it('policy explain names the field of the agent that decides, and one that has no effect', async () => {
    const under = async (network: string): Promise<string> => {
      const constraints = `  constraints: {network: ${network}}\n  forge:`;
      await writeFile(join(folder, 'constrained.yaml'), MANIFESTS.replace('  forge:', constraints));
      return (await explain({ paths: ['constrained.yaml'], host: 'api.example.com:443' })).out;
    };
    assert.match(
      await under('None'),
      /^Deny {2}by constraint\.network[^]*which spec\.constraints\.network of agent "analyst"/,
    );
    assert.match(
      await under('Open'),
      /^Allow {2}by grant\.network[^]*level restricted has network Allowlist; spec\.constraints\.network Open of agent "analyst" has no effect/,
    );
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

  it('policy explain knows the tools of Capabilities: their action, their schema and the host that a call opens', async () => {
    const capability = (extra: string): string => `
---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: refund}
spec:
  type: Tool
  description: Refunds an order.
  tool: {name: refund, category: web, action: "example.com/crm:refund", inputSchema: {type: object, required: [order]}}
  backend: {http: {url: "https://api.example.com/refund"${extra}}}
`;
    const granted = MANIFESTS.replace('[file_read]', '[file_read, refund]');
    const registered = granted.replace('  egress:', '  actions: [{name: "example.com/crm:refund"}]\n  egress:');
    const call = { paths: ['capability.yaml'], tool: 'refund', input: '{"order":"1"}' };
    const cases: readonly (readonly [string, Partial<PolicyExplainOptions>, RegExp])[] = [
      [granted + capability(''), call, /^Deny {2}by action\.unknown/],
      [registered + capability(''), call, /^Escalate {2}by autonomy {2}\(risk high\)[^]*✓ grant\.network/],
      [registered + capability(''), { ...call, input: '{}' }, /^Deny {2}by input-schema/],
      [
        registered.replace('network: [api.example.com]', 'network: []') + capability(''),
        call,
        /^Deny {2}by grant\.network/,
      ],
      [registered + capability(', connection: crm'), call, /^Escalate {2}by autonomy(?![^]*grant\.network)/],
      [
        registered.replace('name: "example.com/crm:refund"', 'name: "example.com/crm:refund", base: db:query') +
          capability('').replace('category: web', 'category: analytics'),
        { ...call, level: 'standard', tainted: true, private: true },
        /^Escalate {2}by private\.network[^]*may send to api\.example\.com/,
      ],
    ];
    for (const [manifests, question, expected] of cases) {
      await writeFile(join(folder, 'capability.yaml'), manifests);
      assert.match((await explain(question)).out, expected);
    }
  });

  it('with a workspace, policy explain knows the private repositories of the connections of the user', async () => {
    const url = 'https://git.corp.internal/team/tools.git';
    const config = join(folder, 'config');
    await mkdir(join(config, 'temper'), { recursive: true, mode: 0o700 });
    const manifests = MANIFESTS.replace('"*.example.com"', 'git.corp.internal')
      .replace('[file_read]', '[git_fetch]')
      .replace('[api.example.com]', '[git.corp.internal]');
    await writeFile(join(folder, 'git.yaml'), manifests);
    const effectOf = async (): Promise<string> => {
      const asked = { tool: 'git_fetch', input: JSON.stringify({ url, branch: 'main' }), level: 'standard' };
      const question = { ...asked, paths: ['git.yaml'], workspace: '.', output: 'json' as const };
      const { out } = await explain(question, { XDG_CONFIG_HOME: config });
      const { effect, rule } = JSON.parse(out) as { effect: string; rule: string };
      return `${effect} by ${rule}`;
    };
    assert.equal(await effectOf(), 'Deny by public-host');
    const connection = `name: tools, hosts: ["git.corp.internal:443"], private: true, tokenEnvironment: GIT_TOKEN, git: {url: "${url}"}`;
    await writeFile(join(config, 'temper', 'connections.yaml'), `connections:\n  - {${connection}}\n`, { mode: 0o600 });
    assert.doesNotMatch(await effectOf(), /Deny/);
  });

  it('with a workspace, policy explain protects what temper run protects there: its state, manifests and skills', async () => {
    await mkdir(join(folder, 'skills'), { recursive: true });
    const run = { workspace: '.', skills: ['skills'] };
    const ruleOf = async (question: Partial<PolicyExplainOptions>): Promise<string> =>
      JSON.parse((await explain({ output: 'json', ...run, ...question })).out).rule;
    for (const path of ['.temper/audit', 'all.yaml', 'skills/x/SKILL.md', join(folder, 'all.yaml')]) {
      assert.equal(await ruleOf({ file: path }), 'workspace', path);
      assert.equal(await ruleOf({ tool: 'file_read', input: JSON.stringify({ path }) }), 'workspace', path);
    }
    assert.equal(await ruleOf({ file: 'data/a.csv' }), 'constraint.files');
    assert.equal(await ruleOf({ file: 'kept/x', state: 'kept' }), 'workspace');
    assert.equal(await ruleOf({ file: '.temper/x', state: 'kept' }), 'constraint.files');
    const { out } = await explain({ output: 'json', file: 'all.yaml' });
    assert.equal(JSON.parse(out).effect, 'Allow', 'a pod has no such files');
  });

  it('policy explain reports invalid questions, and exits 2', async () => {
    const wrong: readonly (readonly [Partial<PolicyExplainOptions>, RegExp])[] = [
      [{}, /ask about exactly one of/],
      [{ tool: 'file_read', host: 'x' }, /exactly one/],
      [{ tool: 'unknown' }, /no tool is named "unknown".*file_read/],
      [{ tool: 'file_read', input: '{"a": 1,}' }, /--input is not JSON: .*position 8/],
      [{ tool: 'x', category: 'web', action: 'code:raed' }, /--action "code:raed".*did you mean code:read\?/],
      [
        { model: 'a/b', level: 'nosuch' },
        /--level "nosuch" is not a level of TrustPolicy "standard"; it has sandboxed/,
      ],
      [{ model: 'a/b', namespace: 'elsewhere' }, /no agent in namespace "elsewhere".*found: analyst/],
      [{ file: 'x', state: 'y' }, /--state works with --workspace only/],
      [{ file: 'x', workspace: 'missing' }, /--workspace .*missing does not exist/],
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
