import { presentArtifact } from '../tempering/judge/material.ts';
import type { ToolReview } from './tool-review.ts';

/**
 * The review with the tool as judges read it, by this release. Takes up to a hundred milliseconds for an artifact of any size, so a
 * server does not call it in its serving thread.
 */
export function withJudged(review: ToolReview): ToolReview {
  if (!review.verdicts.some(({ citedLines = [] }) => citedLines.length > 0)) return review;
  const material = presentArtifact(review.artifact);
  return material.ok ? { ...review, judged: material.text } : review;
}
