import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { asArtifact } from '../../forge/artifact-validation.ts';
import { parseArtifact } from '../../forge/parse-artifact.ts';
import type { Json } from '../../lib/json.ts';

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
