import { createDecider } from '../../policy/decider.ts';
import { allowedSchedules } from '../../policy/schedules.ts';
import { POD_PATHS } from '../../api/cluster.ts';
import { DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import { parentUidOf } from '../children/child-object.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { ScheduleStore } from './ports.ts';

const ROUND_MS = 500;

interface Allowed {
  readonly agent: StoredAgent;
  readonly policy: StoredPolicy;
  readonly schedules: AgentSchedules;
  readonly ids: ReadonlySet<string>;
}

/** The schedules that agents made and what users decided about schedules, in memory of the leader. */
export class ScheduleIndex {
  readonly #store: Pick<ScheduleStore, 'changes' | 'revision'>;
  readonly #byAgent = new Map<string, AgentSchedules>();
  readonly #allowed = new Map<string, Allowed>();
  #read = 0;
  #revision = -1;

  constructor(store: Pick<ScheduleStore, 'changes' | 'revision'>) {
    this.#store = store;
  }

  /** Reads what changed, and passes each changed agent. Returns the milliseconds until the next round. */
  async round(onChange: (before: AgentSchedules | undefined, after: AgentSchedules) => void): Promise<number> {
    const revision = await this.#store.revision();
    if (revision === this.#revision) return ROUND_MS;
    // A lost store starts again.
    if (revision < this.#read) this.#restart();
    const { changed, sequence } = await this.#store.changes(this.#read);
    for (const schedules of changed) {
      const { uid } = schedules.agent;
      const before = this.#byAgent.get(uid);
      this.#byAgent.set(uid, schedules);
      onChange(before, schedules);
    }
    this.#read = sequence;
    this.#revision = revision;
    return ROUND_MS;
  }

  of(agentUid: string): AgentSchedules | undefined {
    return this.#byAgent.get(agentUid);
  }

  /** Do the policy and the grants of the agent still allow this one of its schedules? */
  isAllowed(agent: StoredAgent, policy: StoredPolicy, id: string): boolean {
    const { uid } = agent.metadata;
    const schedules = this.#byAgent.get(uid);
    if (schedules === undefined) return false;
    const known = this.#allowed.get(uid);
    const isCurrent = known?.agent === agent && known.policy === policy && known.schedules === schedules;
    const ids = isCurrent ? known.ids : allowedIds(agent, policy, schedules.own);
    if (!isCurrent) this.#allowed.set(uid, { agent, policy, schedules, ids });
    return ids.has(id);
  }

  forget(agentUid: string): void {
    this.#byAgent.delete(agentUid);
    this.#allowed.delete(agentUid);
  }

  #restart(): void {
    this.#read = 0;
    this.#byAgent.clear();
    this.#allowed.clear();
  }
}

function allowedIds(agent: StoredAgent, policy: StoredPolicy, own: readonly OwnSchedule[]): ReadonlySet<string> {
  const { name, namespace } = agent.metadata;
  const decider = createDecider({
    agent: { name, namespace, spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    // No rule about schedules depends on the level.
    level: agent.status?.level ?? DEFAULT_LEVELS.initial,
    generation: parentUidOf(agent) === undefined ? 0 : 1,
    tainted: false,
    workspace: POD_PATHS.workspace,
  });
  return allowedSchedules(decider, own);
}
