import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { subjects } from '../../nats/jetstream/names.ts';
import { notify } from '../../nats/notify/notifications.ts';
import type { PanelReviewRequest } from '../../nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../nats/promotion/promotion-states.ts';
import { createPanel, type PanelVerdict, unavailablePanel } from '../../tempering/judge/panel.ts';
import { panelWithoutWords } from '../../tempering/withheld/without-words.ts';
import type { AgentState } from '../agent-state.ts';
import { modelAccessFor } from '../models/agent-model-access.ts';
import { agentOf, REVIEW_TIMEOUT_MS, type ReviewJobDeps, sessionTool } from './review-job.ts';

/** At most one verdict of an attempt counts: after a crash between answer and result the panel is asked again, and the first result stays. */
export async function takeReview(
  deps: ReviewJobDeps,
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
  deps: ReviewJobDeps,
  review: PanelReviewRequest,
  deliveries: number,
  signal: AbortSignal,
): Promise<PanelVerdict> {
  const state = agentOf(deps, review.agentUid, deliveries);
  if (state === undefined) return unavailablePanel('the agent does not exist any more');
  try {
    return await askPanel(deps, review, state, signal);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_POLICY_DENIED')) return unavailablePanel(error.message);
    throw error;
  }
}

async function askPanel(
  deps: ReviewJobDeps,
  { agentUid, session, digest, attempt, facts }: PanelReviewRequest,
  state: AgentState,
  signal: AbortSignal,
): Promise<PanelVerdict> {
  const { clock, ids } = deps;
  const tool = await sessionTool(deps, { agentUid, session, digest });
  if (tool === undefined) return unavailablePanel('its session has no such tool any more');
  const access = modelAccessFor(deps, state, false);
  const panel = createPanel({
    model: access.meteredModel,
    reviewers: access.agentModel().reviewers,
    clock,
    nonce: () => ids.next('nonce'),
    canaries: deps.canaries,
  });
  const { namespace } = tool.owner;
  const { material } = await deps.vetter.vet({ agentUid, namespace }, tool.artifact as unknown as Json, signal);
  const op = { signal, deadline: clock.monotonic() + REVIEW_TIMEOUT_MS, key: attempt };
  const problem = { ok: false, problem: 'its artifact does not pass the gates any more' } as const;
  const verdict = await panel.review(tool, facts, op, material ?? problem);
  return tool.sourceWithheld ? panelWithoutWords(verdict) : verdict;
}
