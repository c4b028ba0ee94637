import { createPanelReviews, type ReviewJob } from '../../nats/promotion/panel-reviews.ts';
import { takeReview } from './panel-reviews.ts';
import type { ReviewJobDeps } from './review-job.ts';
import { takeTesters } from './tester-cases.ts';

/** Jobs at a time in one gateway. They wait for models, and the operator asks for a few per agent and namespace only. */
const CONCURRENCY = 16;

/** Asks the models that operators ask for, panels and testers, until the signal aborts. */
export async function serveReviewJobs(deps: ReviewJobDeps, signal: AbortSignal): Promise<void> {
  const reviews = createPanelReviews(deps.bus);
  const onFailure = (error: unknown): void => {
    if (!signal.aborted) deps.log.warn({ error }, 'models could not be asked about a tool yet');
  };
  const take = (job: ReviewJob, deliveries: number) =>
    job.kind === 'Panel' ? takeReview(deps, job, deliveries, signal) : takeTesters(deps, job, deliveries, signal);
  await Promise.all(Array.from({ length: CONCURRENCY }, () => reviews.consume(take, signal, onFailure)));
}
