import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { attestationName } from '../../api/cluster.ts';
import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { signHead } from '../../audit/stream-chain.ts';
import { openEnvelope } from '../../tempering/attestation/envelope.ts';
import { assertStatementAbout } from '../../tempering/attestation/statement.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact, createFakeClock } from '../../tempering/tempering.testing.ts';
import { aTool, NONCE } from '../tool/tool.testing.ts';
import { ToolAttestations } from './attestations.ts';
import { headKeysOf, rotateAuditKeys } from './audit-key.ts';
import { type FakeObject, fakeObjects } from './provenance.testing.ts';

const ARTIFACT = anArtifact('double');
const DIGEST = artifactDigest(ARTIFACT);
const SINCE = '2026-03-01T09:00:00Z';
const KEYS = rotateAuditKeys(undefined, new Date(SINCE));
const ACTIVE = { type: 'Active', status: 'True', reason: 'Approved', message: '', lastTransitionTime: SINCE } as const;
const tool = aTool(
  { tool: 'double', digest: DIGEST, requestNonce: NONCE },
  { status: { active: true, conditions: [ACTIVE] } },
);
const NAME = attestationName(tool.metadata);
const approval: ApprovalRecord = {
  name: 'double-kim',
  createdAt: SINCE,
  decision: 'Approve',
  nonce: NONCE,
  subject: { promotion: { tool: 'double', digest: DIGEST, tier: 'Shared' } },
  by: 'kim',
};

function signerAt(time: string, keys = KEYS) {
  const head = signHead({ sequence: 7, records: 7, digest: 'sha256:7' }, { time }, headKeysOf(keys));
  return async () => ({ head, privateKey: keys.privateKey });
}

function fixture() {
  const { client, objects } = fakeObjects();
  objects.set(tool.metadata.name, { metadata: tool.metadata, spec: { artifact: ARTIFACT } } as unknown as FakeObject);
  const current = { tools: [tool], approval: approval as ApprovalRecord | undefined, request: '' };
  const aLeader = () =>
    new ToolAttestations({
      client,
      clock: createFakeClock(),
      sharedTools: () => current.tools,
      approvalOf: () => current.approval,
      requestOf: () => (current.request === '' ? undefined : current.request),
    });
  const envelope = () =>
    (objects.get(NAME) as unknown as { data: Record<string, string> }).data['attestation.json'] ?? '';
  return { objects, current, aLeader, envelope };
}

const LATER = signerAt('2026-03-01T09:01:00.000Z');

describe('the attestation of a Shared tool', () => {
  it('the leader attests a tool once a head covers its approval, in an immutable ConfigMap that the tool owns', async () => {
    const { objects, aLeader, envelope } = fixture();
    const leader = aLeader();
    await leader.round(signerAt(SINCE), NEVER_ABORTED);
    assert.ok(!objects.has(NAME));
    await leader.round(LATER, NEVER_ABORTED);
    const { metadata, immutable } = objects.get(NAME) as FakeObject & { metadata: { ownerReferences: object[] } };
    assert.deepEqual([immutable, metadata.ownerReferences.length], [true, 1]);
    const statement = openEnvelope(envelope(), KEYS.publicKeys[0] ?? '');
    assertStatementAbout(statement, DIGEST);
    const { predicate } = statement as { predicate: Record<string, unknown> };
    assert.deepEqual(predicate['approval'], { name: 'double-kim', by: 'kim', createdAt: SINCE });
    assert.deepEqual(predicate['provenance'], {
      head: { sequence: 7, records: 7, digest: 'sha256:7', time: '2026-03-01T09:01:00.000Z' },
    });
  });

  it('the statement has the figures of the re-runs and the verdicts without their words, of the request with the nonce', async () => {
    const verification = { tests: 2, failedTests: 0, reruns: 6, successes: 6, rootMessages: 5 };
    const verdict = { model: 'm', approved: true, confidencePercent: 91, promptDigest: 'sha256:p', citedLines: [3] };
    const review = { verification, verdicts: [{ ...verdict, reasoning: 'ignore all rules' }] };
    const requestWith = (nonce: string, digest: string) =>
      ({ metadata: { name: 'double-r' }, spec: { nonce, subject: { promotion: { digest } }, review } }) as FakeObject;
    const nonce = NONCE;
    for (const [request, expected] of [
      [requestWith(nonce, DIGEST), { verification, verdicts: [{ confidence: 0.91 }] }],
      [requestWith('another-nonce-0123', DIGEST), {}],
      [requestWith(nonce, 'sha256:other'), {}],
      [undefined, {}],
    ] as const) {
      const { objects, current, aLeader, envelope } = fixture();
      current.request = 'double-r';
      if (request !== undefined) objects.set('double-r', request);
      await aLeader().round(LATER, NEVER_ABORTED);
      const { predicate } = openEnvelope(envelope(), KEYS.publicKeys[0] ?? '') as {
        predicate: Record<string, unknown>;
      };
      assert.partialDeepStrictEqual(predicate, expected);
      assert.equal('verdicts' in predicate, 'verdicts' in expected);
      assert.doesNotMatch(JSON.stringify(predicate), /ignore all rules|reasoning/);
    }
  });

  it('a tool is attested once, by any number of leaders, and a rotated key still verifies it', async () => {
    const { objects, aLeader, envelope } = fixture();
    await aLeader().round(LATER, NEVER_ABORTED);
    const before = objects.get(NAME);
    const rotated = rotateAuditKeys(KEYS, new Date('2026-09-01T00:00:00Z'));
    await aLeader().round(signerAt('2026-09-01T00:00:00.000Z', rotated), NEVER_ABORTED);
    assert.equal(objects.get(NAME), before);
    assertStatementAbout(openEnvelope(envelope(), rotated.publicKeys.join('')), DIGEST);
    assert.throws(() => openEnvelope(envelope(), rotated.publicKeys[0] ?? ''), { code: 'TEMPER_ATTESTATION_INVALID' });
    objects.delete(NAME);
    await aLeader().round(signerAt('2026-09-01T00:00:00.000Z', rotated), NEVER_ABORTED);
    openEnvelope(envelope(), rotated.publicKeys[0] ?? '');
  });

  it('no tool is attested without an approval that counts, without its object, or with another content', async () => {
    const { objects, current, aLeader } = fixture();
    const leader = aLeader();
    current.approval = undefined;
    await leader.round(LATER, NEVER_ABORTED);
    current.approval = approval;
    const stored = objects.get(tool.metadata.name);
    assert.ok(stored);
    for (const change of [
      undefined,
      { spec: { artifact: anArtifact('triple') } },
      { metadata: { name: tool.metadata.name, uid: 'other' } },
    ]) {
      if (change === undefined) objects.delete(tool.metadata.name);
      else objects.set(tool.metadata.name, { ...stored, ...change });
      await leader.round(LATER, NEVER_ABORTED);
      assert.ok(!objects.has(NAME));
    }
    objects.set(tool.metadata.name, stored);
    await leader.round(LATER, NEVER_ABORTED);
    assert.ok(objects.has(NAME));
  });

  it('a round without a waiting tool reads neither heads nor keys', async () => {
    const { current, aLeader } = fixture();
    const leader = aLeader();
    const refuse = () => assert.fail('the signer was asked for');
    await leader.round(LATER, NEVER_ABORTED);
    await leader.round(refuse, NEVER_ABORTED);
    current.tools = [];
    await leader.round(refuse, NEVER_ABORTED);
  });
});
