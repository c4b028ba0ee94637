import { POD_PATHS } from '../../api/cluster.ts';
import { DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import { createDecider } from '../../policy/decider.ts';
import { bindingOf, effectiveLevels } from '../../policy/trust/effective.ts';
import type { CategoryLevels, Decider } from '../../policy/types.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';

/** Decides for an agent at its recorded levels, also while an edited spec waits for its evaluation. */
export function agentDecider(agent: StoredAgent, policy: StoredPolicy, tainted: boolean): Decider {
  const { name, namespace } = agent.metadata;
  return createDecider({
    agent: { name, namespace, spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level: agent.status?.level ?? policy.spec.level?.initial ?? DEFAULT_LEVELS.initial,
    categoryLevels: categoryLevels(agent, policy),
    tainted,
    workspace: POD_PATHS.workspace,
  });
}

function categoryLevels(agent: StoredAgent, policy: StoredPolicy): CategoryLevels {
  const trust = agent.status?.trust;
  const current = bindingOf(agent, policy);
  const recorded = trust === undefined ? current : { ...trust, agentUid: current.agentUid };
  return effectiveLevels(trust, recorded, policy.spec).categories;
}
