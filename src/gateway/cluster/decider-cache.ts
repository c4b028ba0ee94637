import { modelNames } from '../../api/names.ts';
import type { Agent, AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../../policy/decider.ts';
import type { Decider, PolicySnapshot } from '../../policy/types.ts';
import { hasSameSpec } from './prune.ts';

type Model = AgentSpec['model'];

interface CompiledPolicy {
  readonly policy: TrustPolicy | undefined;
  readonly deciders: Map<string, Decider>;
}

/** Tainted and not, as written and with resolved model names, and a few more while the configuration of the models changes. */
const MAX_DECIDERS_PER_AGENT = 8;

/**
 * Compiles a policy once per version of the agent and its policy, instead of once per request. The informer replaces an object when it
 * changes, so the identity of the agent is its version, and an agent that leaves the informer takes its deciders with it. A policy, whose
 * status the operator writes every minute, is the same while its spec is.
 */
export class DeciderCache {
  readonly #compiled = new WeakMap<Agent, CompiledPolicy>();

  /** The decider of the snapshot, which belongs to this version of agent and policy. `model` has the model names to decide over. */
  get(agent: Agent, policy: TrustPolicy | undefined, snapshot: PolicySnapshot, model: Model): Decider {
    const { deciders } = this.#entryOf(agent, policy);
    // Levels and generation of a child depend on its parents.
    const { tainted, hasPrivateData, level, categoryLevels, generation } = snapshot;
    const key = JSON.stringify([tainted, hasPrivateData, level, categoryLevels, generation, modelNames(model)]);
    const existing = deciders.get(key);
    if (existing !== undefined) return existing;
    const spec = { ...snapshot.agent.spec, model };
    const decider = createDecider({ ...snapshot, agent: { ...snapshot.agent, spec } });
    if (deciders.size >= MAX_DECIDERS_PER_AGENT) deciders.clear();
    deciders.set(key, decider);
    return decider;
  }

  #entryOf(agent: Agent, policy: TrustPolicy | undefined): CompiledPolicy {
    const existing = this.#compiled.get(agent);
    if (existing !== undefined && isSamePolicy(existing.policy, policy)) return existing;
    const entry = { policy, deciders: new Map<string, Decider>() };
    this.#compiled.set(agent, entry);
    return entry;
  }
}

function isSamePolicy(one: TrustPolicy | undefined, other: TrustPolicy | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one === other || hasSameSpec(one, other);
}
