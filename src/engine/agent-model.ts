import { TemperError } from '../lib/errors.ts';
import { withFallbacks } from '../models/resilience/fallback.ts';
import type { Model } from '../models/port.ts';
import { isSameModelName } from '../api/names.ts';
import type { Decider } from '../policy/types.ts';
import type { EngineAgent, EngineModels } from './ports.ts';

/** The models of an agent: for its own turns, its judge and its reviewers. */
export interface AgentModel {
  model: Model;
  /**
   * The recorded author of forged tools. Any model of the agent may be the author, so a model that is also judge or reviewer takes
   * precedence; the verdict of that judge is then void, unless the policy permits it.
   */
  author: string;
  judge: string | undefined;
  /** The policy permits a judge that is the author. */
  judgeMayBeAuthor: boolean;
  reviewers: string[];
}

/** Resolves the model aliases of the agent to real names, which its policy is evaluated against. */
export function resolveModelAliases(agent: EngineAgent, { resolve }: EngineModels): EngineAgent {
  const { primary, fallbacks = [] } = agent.spec.model;
  const model = { ...agent.spec.model, primary: resolve(primary), fallbacks: fallbacks.map(resolve) };
  return { ...agent, spec: { ...agent.spec, model } };
}

/** Throws TEMPER_POLICY_DENIED when the policy does not allow the primary model; fallbacks it does not allow are omitted. */
export function createAgentModel(agent: EngineAgent, models: EngineModels, decider: Decider): AgentModel {
  const { primary, fallbacks = [] } = agent.spec.model;
  const decision = decider.decide({ kind: 'Model', model: primary });
  if (decision.effect !== 'Allow') {
    throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
  }
  const allowed = fallbacks.filter((model) => decider.decide({ kind: 'Model', model }).effect === 'Allow');
  const { judge: judgeName, judgeMayBeAuthor = false, reviewers: reviewerNames = [] } = agent.policy.spec.models ?? {};
  const judge = judgeName === undefined ? undefined : models.resolve(judgeName);
  const reviewers = reviewerNames.map(models.resolve);
  const reviewModels = judge === undefined ? reviewers : [judge, ...reviewers];
  const conflicting = [primary, ...allowed].find((author) =>
    reviewModels.some((reviewModel) => isSameModelName(author, reviewModel)),
  );
  return {
    model: withFallbacks(models.model, allowed),
    author: conflicting ?? primary,
    judge,
    judgeMayBeAuthor,
    reviewers,
  };
}
