import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EmergentTool, EmergentToolSpec } from '../../api/v1alpha1/emergenttool.ts';
import { digestOf, type Digest } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { storedToolProblem } from '../registry/stored-artifact.ts';
import { anArtifact } from '../tempering.testing.ts';
import { artifactWithSource, withoutSource } from './artifact-with-source.ts';

const ARTIFACT = anArtifact('double');
const SOURCE = ARTIFACT.implementation.source ?? '';

/** The stored object of a tool whose source is withheld. */
function anObject(change: Partial<EmergentToolSpec> = {}): Pick<EmergentTool, 'metadata' | 'spec'> {
  const owner = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', name: 'analyst', uid: 'agent-1' };
  const digest = digestOf(ARTIFACT as unknown as Json);
  return {
    metadata: { name: 'double', ownerReferences: [owner] },
    spec: { ...withoutSource(ARTIFACT), digest, tier: 'Agent', ...change },
  };
}

describe('the object of a tool whose source is withheld', () => {
  it('it has a marker with digest and size, and the artifact is complete again with the source of its agent', async () => {
    const object = anObject();
    assert.doesNotMatch(JSON.stringify(object), /execute/);
    assert.equal(object.spec.withheldSource?.bytes, Buffer.byteLength(SOURCE));
    const asked: [string, Digest][] = [];
    const read = await artifactWithSource(object, {
      get: async (agentUid, digest) => {
        asked.push([agentUid, digest]);
        return SOURCE;
      },
    });
    assert.ok(read !== undefined && artifactDigest(read) === object.spec.digest);
    assert.deepEqual(asked, [['agent-1', object.spec.digest]]);
  });

  it('a source that is lost or is another one, and an object without an agent, give no artifact', async () => {
    const owned = anObject();
    assert.equal(await artifactWithSource(owned, { get: async () => undefined }), undefined);
    assert.equal(await artifactWithSource(owned, { get: async () => `${SOURCE} ` }), undefined);
    const ownerless = { ...owned, metadata: { name: 'double' } };
    assert.equal(await artifactWithSource(ownerless, { get: async () => SOURCE }), undefined);
  });

  it('its form is valid at tier Agent only, and only in the place of a source', () => {
    assert.equal(storedToolProblem(anObject().spec), undefined);
    assert.match(storedToolProblem(anObject({ tier: 'Shared' }).spec) ?? '', /must read what he approves/);
    assert.match(storedToolProblem(anObject({ artifact: ARTIFACT }).spec) ?? '', /not in the place of a source/);
    const { artifact } = withoutSource(ARTIFACT);
    assert.match(storedToolProblem(anObject({ artifact: { ...artifact, tests: [] } }).spec) ?? '', /malformed/);
  });
});
