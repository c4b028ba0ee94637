import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import { TemperError } from '../lib/errors.ts';
import { withFallbacks } from '../models/fallback.ts';
import type { Model } from '../models/port.ts';
import { sameModel } from '../tempering/judge.ts';
import type { Decider } from '../policy/types.ts';
import type { EngineAgent, EngineModels } from './ports.ts';

/** The models that may speak for an agent. */
export interface AgentModel {
  model: Model;
  /** The agent's spec with real model names. */
  spec: AgentSpec;
  /**
   * The one a forged tool counts as written by. Any of the agent's models may have written it, so where one of them is also a
   * judge or a reviewer it is that one, and the verdict of that judge is void.
   */
  author: string;
  judge: string | undefined;
  reviewers: string[];
}

/** Throws TEMPER_POLICY_DENIED when the policy does not allow the primary model; fallbacks it does not allow are left out. */
export function createAgentModel(agent: EngineAgent, models: EngineModels, decider: Decider): AgentModel {
  const primary = models.resolve(agent.spec.model.primary);
  const fallbacks = (agent.spec.model.fallbacks ?? []).map((name) => models.resolve(name));
  const decision = decider.decide({ kind: 'Model', model: primary });
  if (decision.effect !== 'Allow') {
    throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
  }
  const allowed = fallbacks.filter((model) => decider.decide({ kind: 'Model', model }).effect === 'Allow');
  const policy = agent.policy.spec.models ?? {};
  const judge = policy.judge === undefined ? undefined : models.resolve(policy.judge);
  const reviewers = (policy.reviewers ?? []).map((name) => models.resolve(name));
  const examiners = judge === undefined ? reviewers : [judge, ...reviewers];
  const conflicting = [primary, ...allowed].find((author) => examiners.some((examiner) => sameModel(author, examiner)));
  return {
    model: withFallbacks(models.model, allowed),
    spec: { ...agent.spec, model: { ...agent.spec.model, primary, fallbacks: allowed } },
    author: conflicting ?? primary,
    judge,
    reviewers,
  };
}
