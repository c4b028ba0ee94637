import { isSameModelName, modelNames } from '../api/names.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { Decider } from '../policy/types.ts';
import { policyDenied } from '../tools/authorize.ts';
import type { EngineAgent } from './ports.ts';

type Routing = NonNullable<AgentSpec['model']['routing']>;

/** Resolves an alias of a manifest to `provider/model`; returns other names unchanged. */
type ResolveName = (name: string) => string;

/** The models of an agent as `provider/model`: of its own turns, its judge, its reviewers and its testers. */
export interface AgentModel {
  primary: string;
  /** The models by complexity that the policy allows. */
  routing: Routing;
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
  const { primary, routing, fallbacks = [] } = agent.spec.model;
  const routed = routing === undefined ? {} : { routing: mappedRouting(routing, resolve) };
  const model = { ...agent.spec.model, primary: resolve(primary), ...routed, fallbacks: fallbacks.map(resolve) };
  return { ...agent, spec: { ...agent.spec, model } };
}

/**
 * `agent` has resolved model names. Throws TEMPER_POLICY_DENIED when the policy does not allow the primary model; other models it does not
 * allow are omitted.
 */
export function createAgentModel(agent: EngineAgent, resolve: ResolveName, decider: Decider): AgentModel {
  const { primary, routing = {}, fallbacks = [] } = agent.spec.model;
  const decision = decider.decide({ kind: 'Model', model: primary });
  if (decision.effect !== 'Allow') throw policyDenied(decision);
  const isAllowed = (model: string): boolean => decider.decide({ kind: 'Model', model }).effect === 'Allow';
  const allowed = fallbacks.filter(isAllowed);
  const routed = mappedRouting(routing, (model) => (isAllowed(model) ? model : undefined));
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
  const authors = modelNames({ primary, routing: routed, fallbacks: allowed });
  const author = commonModel(authors, reviewModels) ?? commonModel(authors, testers) ?? primary;
  return { primary, routing: routed, fallbacks: allowed, author, judge, judgeMayBeAuthor, reviewers, testers };
}

function mappedRouting({ simple, medium, complex }: Routing, map: (model: string) => string | undefined): Routing {
  const mapped = Object.entries({ simple, medium, complex }).flatMap(([key, name]) => {
    const model = name === undefined ? undefined : map(name);
    return model === undefined ? [] : [[key, model] as const];
  });
  return Object.fromEntries(mapped);
}

function commonModel(authors: readonly string[], others: readonly string[]): string | undefined {
  return authors.find((author) => others.some((other) => isSameModelName(author, other)));
}
