/** Whose work a job is. */
export interface JobOwner {
  agentUid: string;
  namespace: string;
}

/**
 * Waiting jobs in the order of their turns: namespaces take turns, and within a namespace its agents do, so an agent with many jobs waits
 * for itself, and a namespace with many agents for itself.
 */
export class CallerTurns<Job extends JobOwner> {
  /** Per namespace its agents, per agent its jobs; each in the order of the turns. */
  readonly #namespaces = new Map<string, Map<string, Job[]>>();

  add(job: Job): void {
    const agents = this.#namespaces.get(job.namespace) ?? new Map<string, Job[]>();
    this.#namespaces.set(job.namespace, agents);
    agents.set(job.agentUid, [...(agents.get(job.agentUid) ?? []), job]);
  }

  /** Adds a job before the other ones of its agent: it had a turn, and needs another one. */
  addFirst(job: Job): void {
    const waiting = this.#namespaces.get(job.namespace)?.get(job.agentUid) ?? [];
    for (const other of waiting) this.remove(other);
    for (const each of [job, ...waiting]) this.add(each);
  }

  /** Removes a job that waits; false for one that does not. */
  remove(job: Job): boolean {
    const agents = this.#namespaces.get(job.namespace);
    const jobs = agents?.get(job.agentUid);
    if (agents === undefined || jobs?.includes(job) !== true) return false;
    const left = jobs.filter((other) => other !== job);
    if (left.length > 0) agents.set(job.agentUid, left);
    else agents.delete(job.agentUid);
    if (agents.size === 0) this.#namespaces.delete(job.namespace);
    return true;
  }

  /** Removes and returns the next job of an agent that is not busy; its agent and its namespace are behind all others then. */
  next(isBusy: (agentUid: string) => boolean): Job | undefined {
    for (const [namespace, agents] of this.#namespaces) {
      for (const [agentUid, [job]] of agents) {
        if (job === undefined || isBusy(agentUid)) continue;
        this.remove(job);
        moveToEnd(agents, agentUid);
        moveToEnd(this.#namespaces, namespace);
        return job;
      }
    }
    return undefined;
  }

  all(): Job[] {
    return [...this.#namespaces.values()].flatMap((agents) => [...agents.values()].flat());
  }
}

function moveToEnd<Value>(entries: Map<string, Value>, key: string): void {
  const value = entries.get(key);
  if (value === undefined) return;
  entries.delete(key);
  entries.set(key, value);
}
