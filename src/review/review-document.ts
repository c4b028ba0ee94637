import { foreign, heading, type ReviewDocument } from './page/document.ts';
import { artifactSections } from './sections/artifact.ts';
import { changeSections } from './sections/changes.ts';
import { evidenceSections } from './sections/evidence.ts';
import { summarySections, undoSection } from './sections/summary.ts';
import type { ToolReview } from './tool-review.ts';

/** The page of a review. It depends on nothing but the review, so equal reviews give equal bytes. The artifact is never cut. */
export function reviewDocument(review: ToolReview): ReviewDocument {
  return [
    heading(1, 'Review of the tool ', foreign(review.artifact.name)),
    ...summarySections(review),
    ...changeSections(review),
    ...artifactSections(review),
    ...evidenceSections(review),
    ...undoSection(review),
  ];
}
