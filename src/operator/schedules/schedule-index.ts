import { createDecider } from '../../policy/decider.ts';
import { allowedSchedules } from '../../policy/schedules.ts';
import { POD_PATHS } from '../../api/cluster.ts';
import { DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import { MAX_SCHEDULES_PER_NAMESPACE, type OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import { parentUidOf } from '../children/child-object.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { ScheduleStore } from './ports.ts';

const ROUND_MS = 500;
const NOT_READ = -1;

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
  /** By namespaces with too many schedules: those that run, `agent/schedule`. Of others, undefined. */
  readonly #oldest = new Map<string, ReadonlySet<string> | undefined>();
  #read = 0;
  #revision = NOT_READ;

  constructor(store: Pick<ScheduleStore, 'changes' | 'revision'>) {
    this.#store = store;
  }

  /** What users have paused is known from the first read on. */
  get isRead(): boolean {
    return this.#revision !== NOT_READ;
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
      this.#oldest.delete(schedules.agent.namespace);
      onChange(before, schedules);
    }
    this.#read = sequence;
    this.#revision = revision;
    return ROUND_MS;
  }

  of(agentUid: string): AgentSchedules | undefined {
    return this.#byAgent.get(agentUid);
  }

  /** Do the policy, the grants of the agent and the limit of its namespace still allow this one of its schedules? */
  isAllowed(agent: StoredAgent, policy: StoredPolicy, id: string): boolean {
    const { uid } = agent.metadata;
    const schedules = this.#byAgent.get(uid);
    if (schedules === undefined) return false;
    const known = this.#allowed.get(uid);
    const isCurrent = known?.agent === agent && known.policy === policy && known.schedules === schedules;
    const ids = isCurrent ? known.ids : allowedIds(agent, policy, schedules.own);
    if (!isCurrent) this.#allowed.set(uid, { agent, policy, schedules, ids });
    return ids.has(id) && this.#isWithinNamespace(agent.metadata.namespace, uid, id);
  }

  /** Gateways can store more than the limit in one moment; the newest ones do not run. */
  #isWithinNamespace(namespace: string, uid: string, id: string): boolean {
    if (!this.#oldest.has(namespace)) this.#oldest.set(namespace, oldestOf(this.#byAgent.values(), namespace));
    return this.#oldest.get(namespace)?.has(`${uid}/${id}`) ?? true;
  }

  forget(agentUid: string): void {
    const namespace = this.#byAgent.get(agentUid)?.agent.namespace;
    if (namespace !== undefined) this.#oldest.delete(namespace);
    this.#byAgent.delete(agentUid);
    this.#allowed.delete(agentUid);
  }

  #restart(): void {
    this.#read = 0;
    this.#byAgent.clear();
    this.#allowed.clear();
    this.#oldest.clear();
  }
}

/** Undefined within the limit. */
function oldestOf(agents: Iterable<AgentSchedules>, namespace: string): ReadonlySet<string> | undefined {
  const all = [...agents]
    .filter(({ agent }) => agent.namespace === namespace)
    .flatMap(({ agent, own }) => own.map(({ id, createdAt }) => ({ key: `${agent.uid}/${id}`, createdAt })));
  if (all.length <= MAX_SCHEDULES_PER_NAMESPACE) return undefined;
  all.sort((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1));
  return new Set(all.slice(0, MAX_SCHEDULES_PER_NAMESPACE).map(({ key }) => key));
}

function orderOf({ createdAt, key }: { createdAt: string; key: string }): string {
  return `${createdAt} ${key}`;
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
