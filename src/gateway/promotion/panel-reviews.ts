import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { subjects } from '../../nats/jetstream/names.ts';
import { notify } from '../../nats/notify/notifications.ts';
import { createPanelReviews, type PanelReviewRequest } from '../../nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../nats/promotion/promotion-states.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Canaries } from '../../tempering/canary/canaries.ts';
import { createPanel, type PanelVerdict, unavailablePanel } from '../../tempering/judge/panel.ts';
import type { AgentDirectory, AgentState } from '../deps.ts';
import { modelAccessFor, type ModelAccessDeps } from '../models/agent-model-access.ts';
import type { ArtifactVetter } from '../review/vetting/pool.ts';

export interface PanelReviewDeps extends ModelAccessDeps {
  directory: ModelAccessDeps['directory'] & Pick<AgentDirectory, 'byUid'>;
  bus: JetStreamConnection;
  registry: Pick<SessionRegistry, 'tools'>;
  vetter: ArtifactVetter;
  /** Supervises the reviewers. */
  canaries: Canaries;
  clock: Clock;
  ids: IdGenerator;
  log: Logger;
}

/** Reviews at a time in one gateway: an agent whose reviewers are slow does not delay all others. */
const CONCURRENCY = 4;
const REVIEW_TIMEOUT_MS = 4 * 60_000;
/** A gateway that does not know the agent may have a cache that lags. */
const MAX_UNKNOWN_DELIVERIES = 5;

/** Takes the reviews that operators ask for, until the signal aborts. */
export async function servePanelReviews(deps: PanelReviewDeps, signal: AbortSignal): Promise<void> {
  const reviews = createPanelReviews(deps.bus);
  const onFailure = (error: unknown): void => {
    if (!signal.aborted) deps.log.warn({ error }, 'a panel could not review a tool yet');
  };
  const take = (review: PanelReviewRequest, deliveries: number) => takeReview(deps, review, deliveries, signal);
  await Promise.all(Array.from({ length: CONCURRENCY }, () => reviews.consume(take, signal, onFailure)));
}

/** At most one verdict of an attempt counts: after a crash between answer and result the panel is asked again, and the first result stays. */
async function takeReview(
  deps: PanelReviewDeps,
  review: PanelReviewRequest,
  deliveries: number,
  signal: AbortSignal,
): Promise<void> {
  const states = createPromotionStates(deps.bus);
  if ((await states.review(review, review.attempt)) === undefined) {
    const verdict = await verdictOf(deps, review, deliveries, signal);
    // A call that ended with the process is no opinion of a reviewer.
    signal.throwIfAborted();
    await states.putReview(review, review.attempt, verdict);
  }
  notify(deps.bus, subjects.notifyPromotions());
}

async function verdictOf(
  deps: PanelReviewDeps,
  review: PanelReviewRequest,
  deliveries: number,
  signal: AbortSignal,
): Promise<PanelVerdict> {
  const state = deps.directory.byUid(review.agentUid);
  if (state === undefined && deliveries < MAX_UNKNOWN_DELIVERIES) {
    throw new TemperError('TEMPER_NOT_FOUND', 'this gateway does not know the agent of a review yet', {
      retry: 'backoff',
    });
  }
  if (state === undefined) return unavailablePanel('the agent does not exist any more');
  try {
    return await askPanel(deps, review, state, signal);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_POLICY_DENIED')) return unavailablePanel(error.message);
    throw error;
  }
}

async function askPanel(
  deps: PanelReviewDeps,
  { agentUid, session, digest, attempt, facts }: PanelReviewRequest,
  state: AgentState,
  signal: AbortSignal,
): Promise<PanelVerdict> {
  const { clock, ids } = deps;
  const tool = (await deps.registry.tools(agentUid, session)).find((candidate) => candidate.digest === digest);
  if (tool === undefined) return unavailablePanel('its session has no such tool any more');
  const access = modelAccessFor(deps, state, false);
  const panel = createPanel({
    model: access.meteredModel,
    reviewers: access.agentModel().reviewers,
    clock,
    nonce: () => ids.next('nonce'),
    canaries: deps.canaries,
  });
  const { material } = await deps.vetter.vet(agentUid, tool.artifact as unknown as Json, signal);
  const op = { signal, deadline: clock.monotonic() + REVIEW_TIMEOUT_MS, key: attempt };
  return panel.review(
    tool,
    facts,
    op,
    material ?? { ok: false, problem: 'its artifact does not pass the gates any more' },
  );
}
