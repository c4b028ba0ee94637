import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import { anArtifact } from '../../../tempering/tempering.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { fakeCluster } from '../api-server.testing.ts';
import { clusterToolExport } from './tool-export.ts';

const ARTIFACT = anArtifact('double');
const DIGEST = artifactDigest(ARTIFACT);
const API_VERSION = 'temper.dev/v1alpha1';
const APPROVER = 'system:serviceaccount:flux-system:kustomize-controller';
const REPORTED = { type: 'Shareable', status: 'False', reason: 'ReportedAnswers', message: '5 answers are reported' };

function toolObject(tier: 'Agent' | 'Shared', ...conditions: object[]): object {
  const metadata = { name: `double-${tier.toLowerCase()}`, namespace: 'team-a' };
  const spec = { artifact: ARTIFACT, digest: DIGEST, tier, requestNonce: 'k4q7pWm2Zc8vN1xRt6Yb' };
  return { apiVersion: API_VERSION, kind: 'EmergentTool', metadata, spec, status: { active: true, conditions } };
}

describe('the export of a tool of a cluster to Git', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-tool-export-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const exported = async (tools: object[]): Promise<string[]> => {
    await using cluster = await fakeCluster(({ path }) => ({
      status: 200,
      body: { kind: 'List', metadata: { resourceVersion: '1' }, items: path.includes('/emergenttools') ? tools : [] },
    }));
    const io = { ...aTerminal(), cwd: folder, environment: { HOME: folder } };
    const { kubeconfig } = cluster;
    const options = { tool: 'double', gitops: 'repo', approver: APPROVER, output: 'text', kubeconfig } as const;
    assert.equal(await clusterToolExport(options, io), 0);
    return await readdir(join(folder, 'repo', 'team-a'));
  };

  it('a tool whose promotion rests on reported answers is refused, and one that is shared anyway can be exported', async () => {
    await assert.rejects(exported([toolObject('Agent', REPORTED)]), {
      code: 'TEMPER_PROMOTION_NOT_READY',
      message: /"double" cannot be shared: 5 answers are reported/,
    });
    await assert.rejects(readdir(join(folder, 'repo')), { code: 'ENOENT' });
    assert.equal((await exported([toolObject('Agent', REPORTED), toolObject('Shared')])).length, 1);
  });
});
