import type { EmergentToolSpec, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { asArtifact } from '../../forge/artifact-validation.ts';
import { parseArtifact } from '../../forge/parse-artifact.ts';
import type { Json } from '../../lib/json.ts';

/** Why no pod can run the tool of a stored object, as far as the object says. Undefined when one can. Never throws. */
export function storedToolProblem({ artifact, digest, tier, withheldSource }: EmergentToolSpec): string | undefined {
  if (withheldSource === undefined) return artifactProblem(artifact, digest);
  if (tier === 'Shared') return 'an approver must read what he approves, and its object does not contain its source';
  const { mode, source } = artifact.implementation;
  if (mode !== 'Sandbox' || source !== undefined) return 'spec.withheldSource is not in the place of a source';
  // The source is the one member that cannot be checked here.
  const complete = { ...artifact, implementation: { ...artifact.implementation, source: '-' } };
  return asArtifact(complete as unknown as Json) === undefined ? 'its artifact is malformed' : undefined;
}

/** Why no pod can run the artifact of a stored object: the same checks as in the pod. Undefined when one can. Never throws. */
export function artifactProblem(artifact: ToolArtifact, digest: string): string | undefined {
  if (artifact.implementation.mode === 'Sandbox' && artifact.implementation.source === undefined) {
    return 'its object does not contain its source';
  }
  if (asArtifact(artifact as unknown as Json) === undefined) return 'its artifact is malformed';
  const parsed = parseArtifact(artifact);
  if ('malformed' in parsed) return 'its artifact is invalid';
  return parsed.digest === digest ? undefined : 'its artifact does not match its digest';
}
