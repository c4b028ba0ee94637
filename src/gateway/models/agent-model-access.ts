import { DEFAULT_OUTPUT_TOKENS } from '../../api/limits/output-tokens.ts';
import { modelNames } from '../../api/names.ts';
import { type AgentModel, createAgentModel, resolveModelAliases } from '../../engine/agent-model.ts';
import type { Ledger } from '../../ledger/port.ts';
import type { NamedModelSet } from '../../models/named-models.ts';
import { calledBy, compose, type ModelPipeline, type ResolvedModel, withNames } from '../../models/pipeline.ts';
import type { Model } from '../../models/port.ts';
import { fallbacks } from '../../models/resilience/fallback.ts';
import type { SharedAccountHolder, SharedLedger } from '../../nats/ledger/ledger.ts';
import type { Decider } from '../../policy/types.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import { accountsOf } from '../ledger/accounts.ts';
import type { UsageRecorder } from '../ledger/usage-recorder.ts';
import type { ModelHealth } from './health.ts';

/** The models an agent may use at this moment, and the ledger its calls are charged to. */
export interface AgentModelAccess {
  /** Decides over real model names, which the patterns of the policy refer to. */
  decider: Decider;
  ledger: Ledger;
  /** Calls any model of the gateway, charged to the agent. */
  meteredModel: Model;
  maxOutputTokens: number;
  /** The allowed models of the agent. Throws TEMPER_POLICY_DENIED when the policy does not allow the primary model. */
  agentModel(): AgentModel;
  /** The requested model, and the pipeline for it; the primary model and those by complexity include the fallbacks. Throws TEMPER_POLICY_DENIED. */
  requestedModel(name: string): { pipeline: ModelPipeline; resolved: ResolvedModel };
}

export interface ModelAccessDeps {
  directory: Pick<AgentDirectory, 'snapshot' | 'decider' | 'policy'>;
  /** Its pipeline charges the caller. */
  models: NamedModelSet;
  health: ModelHealth;
  ledger: SharedLedger;
  usageRecorder: Pick<UsageRecorder, 'of'>;
}

/** What the calls are made for. */
interface CallPurpose {
  /** The root message of the delivery. */
  root?: string;
  /** Further accounts that each call is charged to. */
  accounts?: readonly SharedAccountHolder[];
}

/** Throws TEMPER_POLICY_DENIED when the agent's policy does not exist. */
export function modelAccessFor(
  deps: ModelAccessDeps,
  state: AgentState,
  tainted: boolean,
  { root, accounts = [] }: CallPurpose = {},
): AgentModelAccess {
  const { models, health } = deps;
  const { resolve } = models;
  const idOf = (name: string): string => resolve(name).id;
  const snapshot = deps.directory.snapshot(state, tainted);
  const subject = { ...snapshot.agent, policy: snapshot.policy, level: snapshot.level };
  const agent = resolveModelAliases(subject, idOf);
  const decider = deps.directory.decider(state, tainted, { model: agent.spec.model });
  const ledger = deps.ledger.ledger([...accountsOf(state, deps.directory), ...accounts]);
  const onCharged = deps.usageRecorder.of(state, root);
  const metered = compose(models.pipeline, [calledBy({ id: state.uid, ledger, onCharged })]);
  const agentModel = (): AgentModel => createAgentModel(agent, idOf, decider);
  return {
    decider,
    ledger,
    meteredModel: withNames(metered, resolve),
    maxOutputTokens: agent.spec.model.maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS,
    agentModel,
    requestedModel(name) {
      const resolved = resolve(name);
      const decision = decider.decide({ kind: 'Model', model: resolved.id });
      if (decision.effect !== 'Allow') throw policyDenied(decision);
      const { primary, routing, fallbacks: names } = agentModel();
      if (!modelNames({ primary, routing }).includes(resolved.id)) return { pipeline: metered, resolved };
      const allowed = names.map(resolve);
      const pipeline = compose(metered, [fallbacks(allowed, (failed, model) => health.recordFallback(failed, model))]);
      return { pipeline, resolved };
    },
  };
}
