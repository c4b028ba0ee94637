import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import type { ApiUser } from '../../cluster/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts';
import { createAll, createNamespace, grant } from '../../cluster/objects.ts';
import { tool } from '../../cluster/tools.ts';
import { installAdmissionPolicies } from '../../support/admission/policies.ts';

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));
const GITOPS = 'system:serviceaccount:flux-system:kustomize-controller';
const OPERATOR = {
  user: 'system:serviceaccount:temper-system:temper-operator',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:temper-system', 'system:authenticated'],
} satisfies ApiUser;
const API_VERSION = 'temper.dev/v1alpha1';
/** Texts that YAML 1.1 would read as other values, and characters that YAML has to escape. */
const ARTIFACT = anArtifact('double', {
  description: 'yes',
  implementation: {
    mode: 'Sandbox',
    source: "// ---\nfunction execute(input) {\n\treturn { result: input.value * 2, text: '\u202e\u{e0041} é' };\n}\n",
  },
  tests: [
    { input: '{"value":2}', expectedOutput: '1_000' },
    { input: '12', expectedOutput: 'null' },
  ],
});
const DIGEST = artifactDigest(ARTIFACT);

describe('files that temper tool export --gitops wrote', () => {
  let plane: ControlPlane;
  let kubectl: string;
  let folder: string;

  const run = (program: string, args: readonly string[]) =>
    promisify(execFile)(program, args, { env: { ...process.env, KUBECONFIG: plane.kubeconfig } });
  const asGitOps = (...args: string[]) =>
    run(kubectl, [
      ...args,
      '--as',
      GITOPS,
      '--as-group',
      'system:serviceaccounts',
      '--as-group',
      'system:authenticated',
    ]);
  const exportTool = async (namespace: string): Promise<string> => {
    const target = join(folder, 'repo');
    const args = ['tool', 'export', 'double', '-n', namespace, '--gitops', target, '--approver', GITOPS];
    const { stdout } = await run(TEMPER, args);
    return stdout;
  };
  const path = (namespace: string, kind: string, name = '') =>
    `/apis/${API_VERSION}/namespaces/${namespace}/${kind}${name === '' ? '' : `/${name}`}`;
  const exportFolder = async (namespace: string): Promise<string> => {
    const [name = ''] = await readdir(join(folder, 'repo', namespace));
    return join(folder, 'repo', namespace, name);
  };

  before(async () => {
    kubectl = await tool('kubectl');
    folder = await mkdtemp(join(tmpdir(), 'temper-gitops-'));
    plane = await startControlPlane();
    await installAdmissionPolicies(plane, '--set', `admissionPolicies.approvers={${GITOPS}}`);
    const rules = [
      { apiGroups: ['temper.dev'], resources: ['emergenttools'], verbs: ['approve', 'get', 'create', 'patch'] },
      { apiGroups: ['temper.dev'], resources: ['approvals'], verbs: ['get', 'create', 'patch'] },
    ];
    for (const namespace of ['team-a', 'team-b']) {
      await createNamespace(plane, namespace);
      await grant(plane, { user: GITOPS, groups: [] }, rules, namespace);
      const spec = { artifact: ARTIFACT, digest: DIGEST, tier: 'Agent', contributors: ['agent/analyst'] };
      const metadata = { name: 'double-of-analyst', namespace };
      await createAll(plane, [{ apiVersion: API_VERSION, kind: 'EmergentTool', metadata, spec } as never]);
    }
  });

  after(async () => {
    await plane?.[Symbol.asyncDispose]();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  const modes: [namespace: string, flags: string[]][] = [
    ['team-a', []],
    ['team-b', ['--server-side', '--field-manager=gitops']],
  ];
  for (const [namespace, flags] of modes) {
    it(`the GitOps account applies the files${flags.length === 0 ? '' : ' with server-side apply'}, and kubectl diff is clean`, async () => {
      assert.match(await exportTool(namespace), new RegExp(`^double \\(${DIGEST}\\) of test/${namespace}: merging`));
      const target = await exportFolder(namespace);
      await asGitOps('apply', '-f', target, ...flags);
      const [name = ''] = await readdir(join(folder, 'repo', namespace));
      const status = {
        active: true,
        conditions: [
          {
            type: 'Active',
            status: 'True',
            reason: 'Approved',
            message: 'x',
            lastTransitionTime: '2026-01-01T00:00:00Z',
          },
        ],
      };
      const written = await plane.admin.call('PATCH', `${path(namespace, 'emergenttools', name)}/status`, {
        body: { status },
        contentType: 'application/merge-patch+json',
        as: { ...OPERATOR, groups: [...OPERATOR.groups, 'system:masters'] },
      });
      assert.equal(written.status, 200, JSON.stringify(written.body));
      const { body } = await plane.admin.call('GET', path(namespace, 'emergenttools', name));
      const stored = body as unknown as { spec: { artifact: typeof ARTIFACT; digest: string; requestNonce: string } };
      assert.deepEqual(stored.spec.artifact, ARTIFACT);
      assert.equal(artifactDigest(stored.spec.artifact), stored.spec.digest);
      const { stdout } = await asGitOps('diff', '-f', target, ...flags);
      assert.equal(stdout, '');
    });
  }

  it('a revocation becomes one more file, which the GitOps account applies beside the unchanged approval', async () => {
    const target = await exportFolder('team-a');
    const approval = await readFile(join(target, 'approval.yaml'), 'utf8');
    const { body } = await plane.admin.call('GET', path('team-a', 'approvals'));
    const [stored] = (body as unknown as { items: { spec: { nonce: string; subject: object } }[] }).items;
    const spec = { ...stored?.spec, decision: 'Revoke', approvedBy: { username: OPERATOR.user }, reason: 'wrong unit' };
    const revoked = await plane.admin.call('POST', path('team-a', 'approvals'), {
      body: { apiVersion: API_VERSION, kind: 'Approval', metadata: { name: 'revoke', namespace: 'team-a' }, spec },
      as: { ...OPERATOR, groups: [...OPERATOR.groups, 'system:masters'] },
    });
    assert.equal(revoked.status, 201, JSON.stringify(revoked.body));
    assert.match(await exportTool('team-a'), /revoked, it stays inactive/);
    assert.equal(await readFile(join(target, 'approval.yaml'), 'utf8'), approval);
    assert.match(await readFile(join(target, 'revocation.yaml'), 'utf8'), /decision: "Revoke"[^]*wrong unit/);
    await asGitOps('apply', '-f', target);
    const { stdout } = await asGitOps('diff', '-f', target);
    assert.equal(stdout, '');
  });

  it('the export names what it cannot find on the cluster', async () => {
    const fails = (...args: string[]) =>
      run(TEMPER, ['tool', 'export', ...args]).then(
        () => assert.fail('the export succeeded'),
        (error: { stderr: string; code: number }) => `${error.code} ${error.stderr}`,
      );
    assert.match(
      await fails('triple', '-n', 'team-a', '--gitops', folder),
      /^1 .*TEMPER_NOT_FOUND: no tool "triple" in test\/team-a/,
    );
    assert.match(
      await fails('double', '-n', 'team-a'),
      /^\d .*TEMPER_PACKAGE_INVALID: tool\.testCases\[0\]\.expectedOutput: is no JSON text/,
    );
  });
});
