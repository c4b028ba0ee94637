import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startFakeRegistry } from '../../../oci/registry.testing.ts';
import { createAttestationKey, sealStatement } from '../../../tempering/attestation/envelope.ts';
import { sharedToolStatement } from '../../../tempering/attestation/statement.ts';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import { anArtifact } from '../../../tempering/tempering.testing.ts';
import { exportTool, type ExportToolOptions } from '../../tools/export-tool.ts';
import { toolPull } from '../../tools/oci/tool-pull.ts';
import { toolPush } from '../../tools/oci/tool-push.ts';
import { toolVerify } from '../../tools/tool-verify.ts';
import { type FakeCluster, fakeCluster } from '../api-server.testing.ts';
import { aTerminal } from '../../io.testing.ts';

const KEY = createAttestationKey(Buffer.alloc(32, 3));
const ARTIFACT = anArtifact('double');
const DIGEST = artifactDigest(ARTIFACT);
const head = { sequence: 1, records: 1, digest: 'sha256:1', time: '2026-03-01T09:00:00Z' };
const approval = { name: 'double-kim', by: 'kim', createdAt: '2026-03-01T09:00:00Z' };
const facts = { name: 'double', digest: DIGEST, namespace: 'team-a', tests: 1, contributors: [], approval, head };
const ENVELOPE = sealStatement(sharedToolStatement(facts, '2026-03-01T09:01:00Z'), KEY);

function toolObject(tier: 'Agent' | 'Shared', status: object = { active: true }): object {
  const metadata = {
    name: `double-${tier.toLowerCase()}`,
    uid: '0123456789abcdef',
    namespace: 'team-a',
    creationTimestamp: '2026-03-01T09:00:00Z',
  };
  const spec = { artifact: ARTIFACT, digest: DIGEST, tier, contributors: ['agent/analyst'] };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'EmergentTool', metadata, spec, status };
}

const TOOLS = '/apis/temper.dev/v1alpha1/namespaces/team-a/emergenttools';

/** A cluster with these tools, and the attestation of the Shared one. */
function aCluster(tools: object[]): Promise<FakeCluster> {
  return fakeCluster(({ path }) => {
    if (path.startsWith(TOOLS))
      return { status: 200, body: { kind: 'EmergentToolList', metadata: { resourceVersion: '1' }, items: tools } };
    if (path !== '/api/v1/namespaces/team-a/configmaps/double-shared-01234567-attestation') return undefined;
    return { status: 200, body: { metadata: { name: 'a' }, data: { 'attestation.json': ENVELOPE } } };
  });
}

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-portable-'));
  await writeFile(join(folder, 'key.pem'), KEY.publicPem);
});
after(() => rm(folder, { recursive: true, force: true }));

const anIo = () => ({ ...aTerminal(), cwd: folder, environment: { HOME: folder } });

async function exported({ kubeconfig }: FakeCluster, changes: Partial<ExportToolOptions> = {}) {
  const io = anIo();
  const options = { tool: 'double', state: '.temper', form: 'yaml', output: 'text', kubeconfig } as const;
  assert.equal(await exportTool({ ...options, ...changes }, io), 0);
  return { out: io.printed(), errors: io.errors() };
}

describe('a package of a tool of a cluster', () => {
  it('the package of a Shared tool is exported with the attestation of the operator, which verifies it', async () => {
    await using cluster = await aCluster([toolObject('Agent'), toolObject('Shared')]);
    await exported(cluster, { file: 'double.yaml', attestation: 'double.json' });
    const io = anIo();
    const files = { file: 'double.yaml', attestation: 'double.json', trustedKey: 'key.pem' };
    assert.equal(await toolVerify({ ...files, output: 'text' }, io), 0);
    assert.match(io.printed(), new RegExp(`^double \\(${DIGEST}\\): the trusted key signed its attestation`));
  });

  it('a tool of tier Agent is exported without an attestation, and its missing one is an error', async () => {
    await using cluster = await aCluster([toolObject('Agent', { active: false })]);
    const { out, errors } = await exported(cluster);
    assert.match(out, /^schemaVersion: agentos\.emergent-tool\.v1\n/);
    assert.match(out, /originalTier: agent/);
    assert.match(errors, /double is not active: the operator has not decided yet/);
    await assert.rejects(exported(cluster, { attestation: 'none.json' }), {
      code: 'TEMPER_NOT_FOUND',
      message: /no attestation/,
    });
  });

  it('a tool of a cluster is pushed with its attestation, and pulled by the key of the operator', async () => {
    await using cluster = await aCluster([toolObject('Shared')]);
    await using registry = await startFakeRegistry();
    const reference = `oci://localhost:${registry.port}/team/double:v1`;
    const { kubeconfig } = cluster;
    const options = {
      tool: DIGEST,
      state: '.temper',
      reference,
      attestation: true,
      output: 'text',
      kubeconfig,
    } as const;
    assert.equal(await toolPush(options, anIo()), 0);
    const io = anIo();
    assert.equal(await toolPull({ reference, file: 'pulled.json', trustedKey: 'key.pem', output: 'text' }, io), 0);
    assert.match(io.printed(), /attested by the trusted key\n$/);
  });
});
