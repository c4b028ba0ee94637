import type { Cache } from './kube/cache.ts';
import type { StoredAgent } from './kube/types.ts';
import type { AgentActivity } from './ports.ts';

/**
 * Deletes the NATS data of deleted agents. The cache may lag behind a new agent, so data is deleted only when the UID is absent from the
 * cache in two consecutive rounds.
 */
export class DataGarbageCollector {
  readonly #agentActivity: AgentActivity;
  readonly #agents: Cache<StoredAgent>;
  #missing = new Set<string>();

  constructor(agentActivity: AgentActivity, agents: Cache<StoredAgent>) {
    this.#agentActivity = agentActivity;
    this.#agents = agents;
  }

  /** Returns the number of agents whose data was deleted. */
  async collect(signal: AbortSignal): Promise<number> {
    const withData = await this.#agentActivity.agentsWithData(signal);
    const existing = new Set(this.#agents.list().map(({ metadata }) => metadata.uid));
    const missing = withData.filter((uid) => !existing.has(uid));
    const deleted = missing.filter((uid) => this.#missing.has(uid));
    this.#missing = new Set(missing.filter((uid) => !deleted.includes(uid)));
    for (const uid of deleted) await this.#agentActivity.deleteAgentData(uid, signal);
    return deleted.length;
  }
}
