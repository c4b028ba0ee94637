import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { openAudit } from '../../../audit/recorded-trail.ts';
import { canonicalJson } from '../../../lib/canonical.ts';
import { systemClock } from '../../../lib/clock.ts';
import { fileRecordStore } from '../../../lib/file-record-store.ts';
import { openRegistry } from '../../../tempering/registry/registry.ts';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import { anAcceptance, anArtifact } from '../../../tempering/tempering.testing.ts';
import { fakeCluster } from '../../cluster/api-server.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { manifestsOf } from '../manifests.testing.ts';
import { type PolicyExplainOptions, policyExplain } from '../policy-explain.ts';

const MANIFESTS = manifestsOf(
  ['autonomy: Full', 'level: {initial: standard, ceiling: standard}', 'egress: {allow: ["*.example.com"]}'],
  [
    'autonomy: Full',
    'grants: {tools: [file_read], network: [api.example.com]}',
    'forge: {enabled: true, modes: [Compose, Sandbox]}',
  ],
);

const DOUBLE = anArtifact('double');
const OTHER_DOUBLE = anArtifact('double', { description: 'Another one.' });
const CALL_API = anArtifact('call_api', {
  requires: { apis: ['fetch'], domains: ['api.example.com', 'evil.test'], paths: [] },
});
const FILE_ROWS = anArtifact('file_rows', {
  inputSchema: '{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}',
  implementation: {
    mode: 'Compose',
    steps: [
      { name: 'read', tool: 'file_read', inputMapping: canonicalJson({ path: '$input.path' }) },
      { name: 'save', tool: 'file_write', inputMapping: canonicalJson({ path: 'out', text: '$prev' }) },
    ],
  },
});

function emergentTool(artifact: ToolArtifact, agent: string | undefined, status?: object): object {
  const labels = agent === undefined ? {} : { labels: { 'temper.dev/agent': agent } };
  const tier = agent === undefined ? 'Shared' : 'Agent';
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: { name: `${artifact.name.replaceAll('_', '-')}-${agent ?? 'shared'}`, ...labels },
    spec: { artifact, digest: artifactDigest(artifact), tier },
    ...(status === undefined ? {} : { status }),
  };
}

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-explain-forged-'));
  await writeFile(join(folder, 'all.yaml'), MANIFESTS);
  const records = fileRecordStore(join(folder, '.temper'));
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  const register = (artifact: ToolArtifact, session: string, agent = 'analyst'): Promise<void> =>
    registry.register(anAcceptance(artifact), {
      agent,
      namespace: 'default',
      session,
      rootMessage: 'm',
      authorModel: 'replay/author',
    });
  await register(DOUBLE, 's-1');
  await register(OTHER_DOUBLE, 's-2');
  await register(CALL_API, 's-1');
  await register(FILE_ROWS, 's-1');
  await register(anArtifact('theirs'), 's-9', 'other');
  await register(anArtifact('wrong'), 's-1');
  await registry.demote(artifactDigest(anArtifact('wrong')), 'it was wrong', 'user/kim');
});
after(() => rm(folder, { recursive: true, force: true }));

async function explain(question: Partial<PolicyExplainOptions>) {
  const terminal = aTerminal();
  const io = { ...terminal, environment: { HOME: folder }, cwd: folder };
  const code = await policyExplain({ paths: ['all.yaml'], output: 'json', ...question }, [], io);
  const answer = terminal.printed() === '' ? undefined : JSON.parse(terminal.printed());
  const { effect, rule, refused, trace = [] } = answer ?? {};
  return { code, verdict: `${effect} ${rule}`, refused, trace, error: terminal.errors() };
}

describe('temper policy explain about forged tools', () => {
  it('with a workspace, the forged tools of the state folder are known by name, as a call finds them', async () => {
    const run = { workspace: '.', input: '{"value":2}' };
    const verdict = async (question: Partial<PolicyExplainOptions>) => (await explain({ ...run, ...question })).verdict;
    assert.equal(await verdict({ tool: 'double', session: 's-1' }), 'Allow grant.tools');
    assert.equal(await verdict({ tool: 'double', session: 's-1', input: '{"value":"x"}' }), 'Deny input-schema');
    assert.equal(await verdict({ tool: `double@${artifactDigest(OTHER_DOUBLE)}` }), 'Allow grant.tools');
    assert.equal(await verdict({ tool: 'call_api' }), 'Allow grant.tools');
    assert.equal(await verdict({ tool: 'call_api', tainted: true, private: true }), 'Escalate private.network');
  });

  it('what a forged tool requires is decided too: its hosts, and the call of its first step', async () => {
    const api = await explain({ workspace: '.', tool: 'call_api', input: '{"value":2}' });
    assert.deepEqual(api.refused, ['fetch evil.test (grant.network)']);
    assert.ok(api.trace.some((step: object) => 'rule' in step && step.rule === 'fetch'));
    const rows = (path: string) =>
      explain({ workspace: '.', tool: 'file_rows', input: JSON.stringify({ path }), session: 's-1' });
    const allowed = await rows('data/a.csv');
    assert.equal(allowed.verdict, 'Allow grant.tools');
    assert.deepEqual(allowed.refused, ['step file_write (grant.tools)']);
    assert.equal((await rows('.temper/audit')).verdict, 'Deny workspace');
  });

  it('a forged tool that no call finds is no answer, and the message says why', async () => {
    const wrong: readonly (readonly [Partial<PolicyExplainOptions>, RegExp])[] = [
      [
        { tool: 'double' },
        /"double" is the name of several forged tools: sha256:\S+ of s-1, sha256:\S+ of s-2.*--session/,
      ],
      [{ tool: 'call_api', session: 's-2' }, /none of this name is forged in \S+ for session "s-2"\. /],
      [{ tool: 'doubl' }, /--forged.* or did you mean "double"\?/],
      [{ tool: 'wrong' }, /"wrong" is a forged tool that is not in service: demoted: it was wrong/],
      [{ tool: 'theirs' }, /no tool is named "theirs"/],
      [{ tool: 'double', session: 's-1', category: 'web' }, /is a forged tool, whose category and action are known/],
      [{ tool: 'file_read', forged: true }, /--forged: "file_read" is not a forged tool/],
      [{ tool: 'double', kubeconfig: 'x' }, /--workspace decides as temper run/],
      [{ tool: 'x', values: ['values.yaml'] }, /--values are those of a release/],
    ];
    for (const [question, message] of wrong) {
      const { code, error } = await explain({ workspace: '.', ...question });
      assert.equal(code, 2, JSON.stringify(question));
      assert.match(error, message);
    }
    assert.match((await explain({ tool: 'double', session: 's-1' })).error, /--session works with --workspace only/);
  });

  it('without a workspace, a tool of the state folder is not known, and the message says how to ask about it', async () => {
    const { code, error } = await explain({ tool: 'double' });
    assert.equal(code, 2);
    assert.match(error, /forged in the manifests.*A run in this folder has it, in \.temper: add --workspace \./);
    assert.match((await explain({ tool: 'doubl' })).error, /with --workspace FOLDER; or did you mean "double"\?/);
    assert.match((await explain({ tool: 'nothing_near' })).error, /with --workspace FOLDER; or name one of file_read/);
    assert.match((await explain({ tool: 'theirs' })).error, /no tool is named "theirs"(?!.*A run in this folder)/);
  });

  it('without a workspace, the EmergentTools of the manifests are known, and a run ignores them', async () => {
    const inactive = {
      active: false,
      conditions: [
        {
          type: 'Active',
          status: 'False',
          reason: 'Demoted',
          message: 'by alice',
          lastTransitionTime: '2026-03-01T09:00:00Z',
        },
      ],
    };
    const tools = [
      emergentTool(CALL_API, 'analyst'),
      emergentTool(DOUBLE, undefined),
      emergentTool(anArtifact('theirs'), 'other'),
      emergentTool(anArtifact('gone'), undefined, inactive),
    ];
    await writeFile(join(folder, 'tools.yaml'), tools.map((tool) => JSON.stringify(tool)).join('\n---\n'));
    const asked = { paths: ['all.yaml', 'tools.yaml'], input: '{"value":2}' };
    assert.equal((await explain({ ...asked, tool: 'call_api' })).verdict, 'Allow grant.tools');
    assert.equal((await explain({ ...asked, tool: 'double' })).verdict, 'Allow grant.tools');
    assert.match((await explain({ ...asked, tool: 'theirs' })).error, /forged in the manifests; add its EmergentTool/);
    assert.match((await explain({ ...asked, tool: 'gone' })).error, /not in service: by alice/);
    const run = await explain({ ...asked, tool: 'gone', workspace: '.' });
    assert.match(run.error, /temper run ignores the EmergentTools of the manifests/);
  });

  it('on a cluster, the EmergentTools of the namespace are known', async () => {
    const path = '/apis/temper.dev/v1alpha1/namespaces/team-a/emergenttools';
    const items = [emergentTool(CALL_API, 'analyst', { active: true }), emergentTool(anArtifact('theirs'), 'other')];
    await using cluster = await fakeCluster((request) =>
      request.path.startsWith(path)
        ? { status: 200, body: { kind: 'EmergentToolList', metadata: { resourceVersion: '1' }, items } }
        : undefined,
    );
    const { kubeconfig } = cluster;
    const found = await explain({ tool: 'call_api', input: '{"value":2}', kubeconfig });
    assert.deepEqual([found.verdict, found.refused], ['Allow grant.tools', ['fetch evil.test (grant.network)']]);
    assert.match((await explain({ tool: 'theirs', kubeconfig })).error, /the tools of open sessions are not objects/);
    assert.equal((await explain({ tool: 'theirs', category: 'web', kubeconfig })).verdict, 'Deny grant.tools');
    assert.equal(cluster.requests.length, 2, 'a known category needs no cluster');
  });

  it('a forged tool that is nowhere yet is decided by its requirements', async () => {
    const asked = { forged: true, tool: 'later', input: '{}' };
    assert.equal((await explain(asked)).verdict, 'Allow grant.tools');
    const api = { ...asked, api: ['fetch'], domain: ['*.example.com', 'evil.test'] };
    const { verdict, refused } = await explain(api);
    assert.deepEqual([verdict, refused], ['Allow grant.tools', ['fetch evil.test (grant.network)']]);
    const guarded = { ...api, tainted: true, private: true };
    assert.equal((await explain(guarded)).verdict, 'Escalate private.network');
    const wrong: readonly (readonly [Partial<PolicyExplainOptions>, RegExp])[] = [
      [{ ...asked, domain: ['a.test'] }, /--domain needs --api fetch/],
      [{ ...asked, path: ['a'] }, /--path needs --api fs\.readFile/],
      [{ ...asked, api: ['eval'] }, /--api "eval" is not one of/],
      [{ ...asked, api: ['fetch'], domain: ['a b'] }, /--domain: /],
      [{ ...asked, category: 'web' }, /follow from --api/],
      [{ host: 'a.test', forged: true }, /--forged works with --tool only/],
      [{ tool: 'file_read', domain: ['a.test'] }, /--domain is a requirement of a forged tool/],
    ];
    for (const [question, message] of wrong) {
      const { code, error } = await explain(question);
      assert.equal(code, 2, JSON.stringify(question));
      assert.match(error, message);
    }
  });
});

describe('temper policy explain and the connections of a release', () => {
  const PRIVATE = 'https://git.corp.internal/team/tools.git';
  const CAPABILITY = `
---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: refund}
spec:
  type: Tool
  description: Refunds an order.
  tool: {name: refund, category: web, action: db:query, inputSchema: {type: object}}
  backend: {http: {url: "https://crm.example.com/refund", connection: crm}}
`;
  const values = (namespace: string): object => ({
    gateway: {
      connections: [
        {
          name: 'tools',
          hosts: ['git.corp.internal:443'],
          private: true,
          namespaces: [namespace],
          credential: { existingSecret: 'git', key: 'token' },
          repository: { url: PRIVATE },
        },
        {
          name: 'crm',
          hosts: ['crm.example.com:443'],
          namespaces: [namespace],
          credential: { existingSecret: 'crm', key: 'token' },
        },
      ],
    },
  });
  const git = (tool: string, url: string, more = {}): Partial<PolicyExplainOptions> => ({
    paths: ['git.yaml'],
    tool,
    input: JSON.stringify({ url, branch: 'agents/a', ...more }),
  });
  const PULL = { title: 'x' };

  before(async () => {
    const granted = MANIFESTS.replace('[file_read]', '["git_*", refund]')
      .replace('[api.example.com]', '["**"]')
      .replace('"*.example.com"', '"**", "*.internal"');
    await writeFile(join(folder, 'git.yaml'), granted + CAPABILITY);
    await mkdir(join(folder, 'values'));
    await writeFile(join(folder, 'values/own.yaml'), JSON.stringify(values('default')));
    await writeFile(join(folder, 'values/other.yaml'), JSON.stringify(values('team-b')));
    await writeFile(join(folder, 'values/none.yaml'), 'gateway: {replicas: 2}\n');
    await writeFile(join(folder, 'values/text.yaml'), 'USER-SUPPLIED VALUES\n');
  });

  it('a private host is neither denied nor allowed while the connections are not known', async () => {
    const { code, error } = await explain(git('git_fetch', PRIVATE));
    assert.equal(code, 2);
    assert.match(error, /depends on gateway\.connections of the release.*--values FILE/);
    const denied = await explain({ ...git('git_fetch', PRIVATE), tainted: true, level: 'sandboxed' });
    assert.match(denied.verdict, /^Deny /, 'what is denied with any connection is denied');
    const open = await explain(git('git_pull_request', 'https://git.example.com/a.git', PULL));
    assert.match(open.verdict, /^(Allow|Escalate) /);
    assert.ok(JSON.stringify(open.trace).includes('"rule":"connection","verdict":"not-applicable"'));
  });

  it('with the values of the release, its connections decide for the namespace of the agent', async () => {
    const verdict = async (question: Partial<PolicyExplainOptions>, ...files: string[]): Promise<string> =>
      (await explain({ ...question, values: files.map((file) => `values/${file}.yaml`) })).verdict;
    const fetches = git('git_fetch', PRIVATE);
    assert.match(await verdict(fetches, 'own'), /^(Allow|Escalate) /);
    assert.match(await verdict(fetches, 'own', 'none'), /^(Allow|Escalate) /);
    assert.equal(await verdict(fetches, 'other'), 'Deny public-host');
    assert.equal(await verdict(fetches, 'own', 'other'), 'Deny public-host');
    const pull = git('git_pull_request', 'https://git.example.com/a.git', PULL);
    assert.equal(await verdict(pull, 'own'), 'Deny connection');
    assert.match(await verdict(git('git_pull_request', PRIVATE, PULL), 'own'), /^(Allow|Escalate) /);
    const refund = { paths: ['git.yaml'], tool: 'refund', input: '{}' };
    assert.match(await verdict(refund, 'own'), /^(Allow|Escalate) /);
    assert.equal(await verdict(refund, 'none'), 'Deny available');
    assert.equal(await verdict({ paths: ['git.yaml'], tool: 'refund' }, 'other'), 'Deny available');
    const unknown = await explain(refund);
    assert.ok(JSON.stringify(unknown.trace).includes('whether gateway.connections of the release has \\"crm\\"'));
  });

  it('values that cannot be used are refused by name', async () => {
    const error = async (file: string) => (await explain({ ...git('git_fetch', PRIVATE), values: [file] })).error;
    assert.match(await error('values/text.yaml'), /--values values\/text\.yaml has no values.*helm get values/);
    assert.match(await error('missing.yaml'), /--values missing\.yaml does not exist/);
    await writeFile(join(folder, 'values/bad.yaml'), 'gateway: {connections: [{name: x}]}\n');
    await assert.rejects(error('values/bad.yaml'), /gateway\.connections of values\/bad\.yaml: connections\/0/);
  });
});
