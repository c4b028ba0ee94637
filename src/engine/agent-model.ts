import { TemperError } from '../lib/errors.ts';
import { withFallbacks } from '../models/fallback.ts';
import type { Model } from '../models/port.ts';
import { sameModel } from '../tempering/judge.ts';
import type { Decider } from '../policy/types.ts';
import type { EngineAgent, EngineModels } from './ports.ts';

/** The models that may speak for an agent. */
export interface AgentModel {
  model: Model;
  /**
   * The one a forged tool counts as written by. Any of the agent's models may have written it, so where one of them is also a
   * judge or a reviewer it is that one, and the verdict of that judge is void.
   */
  author: string;
  judge: string | undefined;
  reviewers: string[];
}

/** The agent with the real names of its models, as its policy must see them. */
export function withRealModels(agent: EngineAgent, { resolve }: EngineModels): EngineAgent {
  const { primary, fallbacks = [] } = agent.spec.model;
  const model = { ...agent.spec.model, primary: resolve(primary), fallbacks: fallbacks.map(resolve) };
  return { ...agent, spec: { ...agent.spec, model } };
}

/** Throws TEMPER_POLICY_DENIED when the policy does not allow the primary model; fallbacks it does not allow are left out. */
export function createAgentModel(agent: EngineAgent, models: EngineModels, decider: Decider): AgentModel {
  const { primary, fallbacks = [] } = agent.spec.model;
  const decision = decider.decide({ kind: 'Model', model: primary });
  if (decision.effect !== 'Allow') {
    throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
  }
  const allowed = fallbacks.filter((model) => decider.decide({ kind: 'Model', model }).effect === 'Allow');
  const { judge: judgeName, reviewers: reviewerNames = [] } = agent.policy.spec.models ?? {};
  const judge = judgeName === undefined ? undefined : models.resolve(judgeName);
  const reviewers = reviewerNames.map(models.resolve);
  const examiners = judge === undefined ? reviewers : [judge, ...reviewers];
  const conflicting = [primary, ...allowed].find((author) => examiners.some((examiner) => sameModel(author, examiner)));
  return { model: withFallbacks(models.model, allowed), author: conflicting ?? primary, judge, reviewers };
}
