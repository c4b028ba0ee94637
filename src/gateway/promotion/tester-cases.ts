import { parseArtifact } from '../../forge/parse-artifact.ts';
import { isTemperError } from '../../lib/errors.ts';
import { subjects } from '../../nats/jetstream/names.ts';
import { notify } from '../../nats/notify/notifications.ts';
import type { TesterRequest } from '../../nats/promotion/panel-reviews.ts';
import { createPromotionStates } from '../../nats/promotion/promotion-states.ts';
import { type TesterAnswer, testersProblem } from '../../tempering/examination/testers/ask-tester.ts';
import { createModelTesters } from '../../tempering/examination/testers/model-testers.ts';
import type { AgentState } from '../agent-state.ts';
import { modelAccessFor } from '../models/agent-model-access.ts';
import { agentOf, REVIEW_TIMEOUT_MS, type ReviewJobDeps, sessionTool } from './review-job.ts';

/** As with the panel, the first answers of an attempt stay. Testers get no canaries: their cases are compared with what the tool does. */
export async function takeTesters(
  deps: ReviewJobDeps,
  request: TesterRequest,
  deliveries: number,
  signal: AbortSignal,
): Promise<void> {
  const states = createPromotionStates(deps.bus);
  if ((await states.testerAnswers(request, request.attempt)) === undefined) {
    const answers = await answersOf(deps, request, deliveries, signal);
    signal.throwIfAborted();
    await states.putTesterAnswers(request, request.attempt, answers);
  }
  notify(deps.bus, subjects.notifyPromotions());
}

async function answersOf(
  deps: ReviewJobDeps,
  request: TesterRequest,
  deliveries: number,
  signal: AbortSignal,
): Promise<TesterAnswer[]> {
  const state = agentOf(deps, request.agentUid, deliveries);
  if (state === undefined) return [];
  try {
    return await askTesters(deps, request, state, signal);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_POLICY_DENIED')) return [];
    throw error;
  }
}

/** No answers for a tool that its testers must not or cannot test; the operator states why. */
async function askTesters(
  deps: ReviewJobDeps,
  { agentUid, session, digest, attempt }: TesterRequest,
  state: AgentState,
  signal: AbortSignal,
): Promise<TesterAnswer[]> {
  const { clock, ids } = deps;
  const tool = await sessionTool(deps, { agentUid, session, digest });
  const open = tool === undefined ? undefined : parseArtifact(tool.artifact);
  if (tool === undefined || open === undefined || 'malformed' in open) return [];
  const access = modelAccessFor(deps, state, false);
  const { testers } = access.agentModel();
  if (testersProblem(testers, tool.authorModel) !== undefined) return [];
  const ask = createModelTesters({ model: access.meteredModel, clock, nonce: () => ids.next('nonce') }, testers);
  const op = { signal, deadline: clock.monotonic() + REVIEW_TIMEOUT_MS, key: attempt };
  return ask.ask(open, op);
}
