import { isSameModelName } from '../api/names.ts';
import type { Decider } from '../policy/types.ts';
import { policyDenied } from '../tools/authorize.ts';
import type { EngineAgent } from './ports.ts';

/** Resolves an alias of a manifest to `provider/model`; returns other names unchanged. */
type ResolveName = (name: string) => string;

/** The models of an agent as `provider/model`: of its own turns, its judge, its reviewers and its testers. */
export interface AgentModel {
  primary: string;
  /** The fallbacks that the policy allows, in order. */
  fallbacks: string[];
  /**
   * The recorded author of forged tools. Any model of the agent may be the author, so a model that is also judge or reviewer takes
   * precedence; the verdict of that judge is then void, unless the policy permits it.
   */
  author: string;
  judge: string | undefined;
  /** The policy permits a judge that is the author. */
  judgeMayBeAuthor: boolean;
  reviewers: string[];
  /** The models that write cases for a tool before its promotion. */
  testers: string[];
}

/** Resolves the model aliases of the agent to real names, which its policy is evaluated against. */
export function resolveModelAliases(agent: EngineAgent, resolve: ResolveName): EngineAgent {
  const { primary, fallbacks = [] } = agent.spec.model;
  const model = { ...agent.spec.model, primary: resolve(primary), fallbacks: fallbacks.map(resolve) };
  return { ...agent, spec: { ...agent.spec, model } };
}

/**
 * `agent` has resolved model names. Throws TEMPER_POLICY_DENIED when the policy does not allow the primary model; fallbacks it does not
 * allow are omitted.
 */
export function createAgentModel(agent: EngineAgent, resolve: ResolveName, decider: Decider): AgentModel {
  const { primary, fallbacks = [] } = agent.spec.model;
  const decision = decider.decide({ kind: 'Model', model: primary });
  if (decision.effect !== 'Allow') throw policyDenied(decision);
  const allowed = fallbacks.filter((model) => decider.decide({ kind: 'Model', model }).effect === 'Allow');
  const models = agent.policy.spec.models ?? {};
  const {
    judge: judgeName,
    judgeMayBeAuthor = false,
    reviewers: reviewerNames = [],
    testers: testerNames = [],
  } = models;
  const judge = judgeName === undefined ? undefined : resolve(judgeName);
  const reviewers = reviewerNames.map(resolve);
  const reviewModels = judge === undefined ? reviewers : [judge, ...reviewers];
  const testers = testerNames.map(resolve);
  const authors = [primary, ...allowed];
  const author = commonModel(authors, reviewModels) ?? commonModel(authors, testers) ?? primary;
  return { primary, fallbacks: allowed, author, judge, judgeMayBeAuthor, reviewers, testers };
}

function commonModel(authors: readonly string[], others: readonly string[]): string | undefined {
  return authors.find((author) => others.some((other) => isSameModelName(author, other)));
}
