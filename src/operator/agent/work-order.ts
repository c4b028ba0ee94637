import { priorityRank } from '../../api/limits/priority.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { parseScheduleKey } from '../schedules/scheduled.ts';

/** The rank of a key of an agent or of one of its schedules among the keys of its namespace. An agent that is gone has the lowest. */
export function agentRank(
  agents: Pick<Cache<StoredAgent>, 'get'>,
  policies: Pick<Cache<StoredPolicy>, 'get'>,
  key: string,
): number {
  const { namespace, name } = parseScheduleKey(key);
  const agent = agents.get(namespace, name);
  if (agent === undefined) return 0;
  return priorityRank(agent.spec, policies.get(namespace, agent.spec.trustPolicyRef.name)?.spec);
}
