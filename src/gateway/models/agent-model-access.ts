import { type AgentModel, createAgentModel, resolveModelAliases } from '../../engine/agent-model.ts';
import type { Ledger } from '../../ledger/port.ts';
import { TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { withFallbacks } from '../../models/resilience/fallback.ts';
import type { Model } from '../../models/port.ts';
import type { SharedLedger } from '../../nats/ledger/ledger.ts';
import type { Decider } from '../../policy/types.ts';
import type { AgentState, AgentDirectory } from '../deps.ts';
import { accountsOf } from '../ledger/accounts.ts';
import { withLedgerMetering, type GatewayModelSet } from './metered-models.ts';
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
  /** The requested model and its real name; the primary model includes its fallbacks. Throws TEMPER_POLICY_DENIED. */
  requestedModel(name: string): { model: Model; resolved: string };
}

export interface ModelAccessDeps {
  directory: Pick<AgentDirectory, 'snapshot' | 'decider' | 'policy'>;
  ids: IdGenerator;
  models: GatewayModelSet;
  health: ModelHealth;
  ledger: SharedLedger;
}

const DEFAULT_OUTPUT_TOKENS = 4_096;

/** Throws TEMPER_POLICY_DENIED when the agent's policy does not exist. */
export function modelAccessFor(deps: ModelAccessDeps, state: AgentState, tainted: boolean): AgentModelAccess {
  const { models, health } = deps;
  const snapshot = deps.directory.snapshot(state, tainted);
  const subject = { ...snapshot.agent, policy: snapshot.policy, level: snapshot.level };
  const agent = resolveModelAliases(subject, models);
  const decider = deps.directory.decider(state, tainted, agent.spec.model);
  const ledger = deps.ledger.ledger(accountsOf(state, deps.directory));
  const meteredModel = withLedgerMetering(models, ledger, deps.ids);
  const { primary, fallbacks = [], maxOutputTokens = DEFAULT_OUTPUT_TOKENS } = agent.spec.model;
  const allowed = fallbacks.filter((model) => decider.decide({ kind: 'Model', model }).effect === 'Allow');
  return {
    decider,
    ledger,
    meteredModel,
    maxOutputTokens,
    agentModel: () => createAgentModel(agent, { ...models, model: meteredModel }, decider),
    requestedModel(name) {
      const resolved = models.resolve(name);
      const decision = decider.decide({ kind: 'Model', model: resolved });
      if (decision.effect !== 'Allow') {
        throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
      }
      if (resolved !== primary) return { model: meteredModel, resolved };
      return { model: withFallbacks(recordFallback(meteredModel, primary, health), allowed), resolved };
    },
  };
}

/** Records in the provider health which fallback answered in place of the primary model. */
function recordFallback(model: Model, primary: string, health: ModelHealth): Model {
  return {
    async *stream(request, op) {
      for await (const event of model.stream(request, op)) {
        if (event.type === 'end' && request.model !== primary) health.recordFallback(primary, request.model);
        yield event;
      }
    },
    embed: (texts, op) => model.embed(texts, op),
  };
}
