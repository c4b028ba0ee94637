import { type ArtifactVetting, vetArtifact } from '../../../forge/static-gates.ts';
import type { Json } from '../../../lib/json.ts';
import { presentArtifact } from '../../../tempering/judge/material.ts';

/** Everything of a review that depends on the artifact alone and takes time: its vetting and what the judge reads. */
export function prepareReview(artifact: Json): ArtifactVetting {
  return vetArtifact(artifact, { present: presentArtifact });
}
