import type { EmergentTool, ToolArtifact, WithheldSource } from '../../api/v1alpha1/emergenttool.ts';
import { type Digest, isDigest, sha256 } from '../../lib/canonical.ts';

/** Reads the withheld sources of agents; undefined for one that is lost. */
export interface WithheldSourceReader {
  get(agentUid: string, digest: Digest): Promise<string | undefined>;
}

/**
 * The artifact of an object, with the source that its agent withholds. Undefined when that source is lost or is another one. The caller
 * computes the digest of the artifact.
 */
export async function artifactWithSource(
  { metadata, spec }: Pick<EmergentTool, 'metadata' | 'spec'>,
  sources: WithheldSourceReader,
): Promise<ToolArtifact | undefined> {
  const { artifact, digest, withheldSource } = spec;
  if (withheldSource === undefined) return artifact;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'Agent');
  if (owner === undefined || !isDigest(digest)) return undefined;
  const source = await sources.get(owner.uid, digest);
  if (source === undefined || sha256(source) !== withheldSource.digest) return undefined;
  return { ...artifact, implementation: { ...artifact.implementation, source } };
}

/** What an object has of an artifact whose source is withheld. */
export function withoutSource(artifact: ToolArtifact): { artifact: ToolArtifact; withheldSource?: WithheldSource } {
  const { source, ...implementation } = artifact.implementation;
  if (source === undefined) return { artifact };
  const withheldSource = { digest: sha256(source), bytes: Buffer.byteLength(source) };
  return { artifact: { ...artifact, implementation }, withheldSource };
}
