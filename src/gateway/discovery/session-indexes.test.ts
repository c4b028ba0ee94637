import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { complete } from '../../discovery/lexical/steps.ts';
import type { LexicalIndex } from '../../discovery/lexical/lexical-index.ts';
import type { SearchSteps } from '../../discovery/lexical/steps.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import { SessionIndexes } from './session-indexes.ts';

const tool = (name: string) => {
  const artifact = anArtifact(name);
  return { artifact, digest: artifactDigest(artifact) };
};

/** Indexes, and how often one was made. */
function counted() {
  const indexes = new SessionIndexes();
  let made = 0;
  const run = async (steps: SearchSteps<LexicalIndex>) => {
    made += 1;
    return complete(steps);
  };
  const of = (agentUid: string, session: string, names: string[]) =>
    indexes.of({ agentUid, session }, names.map(tool), run);
  return { of, made: () => made };
}

describe('the index of the tools of a session', () => {
  it('an index is the same until the tools of the session change', async () => {
    const { of, made } = counted();
    const first = await of('u-1', 's', ['double', 'triple']);
    const again = await of('u-1', 's', ['double', 'triple']);
    assert.ok(first.index === again.index && first.entries[0] === again.entries[0]);
    const less = await of('u-1', 's', ['triple']);
    assert.deepEqual([less.index.size, less.entries.map(({ name }) => name), made()], [1, ['triple'], 2]);
  });

  it('sessions and agents with the same tools share no entries, so that a decision about one is not one about the other', async () => {
    const { of } = counted();
    const all = await Promise.all([of('u-1', 's', ['double']), of('u-2', 's', ['double']), of('u-1', 't', ['double'])]);
    assert.equal(new Set(all.map(({ entries }) => entries[0])).size, 3);
  });

  it('the entries of all sessions that stay are at most 250, and a larger session has its index all the same', async () => {
    const { of, made } = counted();
    const many = Array.from({ length: 251 }, (_, index) => `tool_${index}`);
    assert.equal((await of('u-1', 'large', many)).index.size, 251);
    await of('u-1', 'large', many);
    assert.equal(made(), 2);
  });
});
