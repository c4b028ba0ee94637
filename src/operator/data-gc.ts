import type { Clock } from '../lib/clock.ts';
import type { Resident } from '../nats/residents/resident.ts';
import type { Logger } from '../telemetry/log.ts';
import type { StoredAgent } from './kube/types.ts';
import type { AgentActivity } from './ports.ts';

export interface DataGcDeps {
  readonly agentActivity: Pick<
    AgentActivity,
    'residents' | 'addResident' | 'markMissing' | 'deleteAgentData' | 'recordDeletion' | 'unavailableSince'
  >;
  /** The cache; it may lag behind the API server. */
  readonly agents: () => readonly StoredAgent[];
  /** Reads the Agent from the API server. */
  readonly exists: (agent: Resident, signal: AbortSignal) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rules: DataGcRules;
}

export interface DataGcRules {
  /** Only data of agents of this release is deleted. */
  readonly release: string;
  /** The namespaces that the operator watches; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  /** Time between the look at which an Agent is missing and the deletion of its data. */
  readonly waitMs: number;
  /** Reports what would be deleted. */
  readonly dryRun: boolean;
}

/** What one round found. */
export interface DataGcRound {
  /** Agents that exist. */
  present: number;
  /** Agents that do not exist, whose data is kept for now. */
  missing: number;
  /** Entries of another release or of a namespace that is not watched. */
  foreign: number;
  /** Agents that could not be looked at, recorded or deleted; the next round tries again. */
  failed: number;
  deleted: number;
  /** In a dry run. */
  wouldDelete: number;
}

/** Entries that a round adds for agents of an older release, which wrote none. */
const MAX_ADDED = 500;

/**
 * Deletes the NATS data of deleted agents. It goes by the list of agents with data, not by the data. An Agent must be missing at two
 * looks at least `waitMs` apart, and the first look is stored, so a change of the leader does not shorten the time. Before it marks and
 * before it deletes, the collector asks the API server. What fails for one agent does not keep the others. It never touches what another release or a namespace that it does not watch has.
 */
export class DataGarbageCollector {
  readonly #deps: DataGcDeps;

  constructor(deps: DataGcDeps) {
    this.#deps = deps;
  }

  /** One round over all agents. Throws TEMPER_BUS_* when NATS is unreachable. */
  async collect(signal: AbortSignal): Promise<DataGcRound> {
    const { agentActivity, agents } = this.#deps;
    const round: DataGcRound = { present: 0, missing: 0, foreign: 0, failed: 0, deleted: 0, wouldDelete: 0 };
    const existing = new Map(agents().map((agent) => [agent.metadata.uid, agent]));
    const listed = new Set<string>();
    for await (const resident of agentActivity.residents(signal)) {
      listed.add(resident.uid);
      round[await this.#visited(resident, existing.has(resident.uid), signal)] += 1;
    }
    await this.#addUnlisted(
      [...existing.values()].filter(({ metadata }) => !listed.has(metadata.uid)),
      signal,
    );
    return round;
  }

  async #visited(resident: Resident, isCached: boolean, signal: AbortSignal): Promise<keyof DataGcRound> {
    try {
      return await this.#visit(resident, isCached, signal);
    } catch (error) {
      if (signal.aborted || this.#deps.agentActivity.unavailableSince() !== undefined) throw error;
      const { namespace, name: agent, uid } = resident;
      this.#deps.log.error(
        { error, namespace, agent, agentUid: uid },
        'the NATS data of an agent could not be checked or deleted; the next round tries again',
      );
      return 'failed';
    }
  }

  async #visit(resident: Resident, isCached: boolean, signal: AbortSignal): Promise<keyof DataGcRound> {
    const { agentActivity, exists, clock, rules } = this.#deps;
    const { release, namespaces, waitMs } = rules;
    if (resident.release !== release || namespaces?.includes(resident.namespace) === false) return 'foreign';
    const { missingSince } = resident;
    const isDue = missingSince !== undefined && clock.now().getTime() - Date.parse(missingSince) >= waitMs;
    if (!isCached && missingSince !== undefined && !isDue) return 'missing';
    if (isCached || (await exists(resident, signal))) {
      if (missingSince !== undefined) await agentActivity.markMissing(resident, undefined, signal);
      return 'present';
    }
    if (missingSince === undefined) {
      await agentActivity.markMissing(resident, clock.now().toISOString(), signal);
      return 'missing';
    }
    return this.#delete(resident, missingSince, signal);
  }

  async #delete(resident: Resident, missingSince: string, signal: AbortSignal): Promise<'deleted' | 'wouldDelete'> {
    const { agentActivity, log, rules } = this.#deps;
    const { namespace, name: agent, uid, bytes } = resident;
    const fields = { namespace, agent, agentUid: uid, missingSince, bytes };
    if (rules.dryRun) {
      log.info(fields, 'dry run: the NATS data of this deleted agent would be deleted');
      return 'wouldDelete';
    }
    // Recorded first: a deletion without a record would be worse than a record of a deletion that is repeated.
    await agentActivity.recordDeletion(resident, missingSince, signal);
    await agentActivity.deleteAgentData(resident, signal);
    log.info(fields, 'deleted the NATS data of a deleted agent');
    return 'deleted';
  }

  /** Agents that an older release served have data and no entry. */
  async #addUnlisted(agents: readonly StoredAgent[], signal: AbortSignal): Promise<void> {
    const { agentActivity, rules } = this.#deps;
    const used = agents.filter(({ status }) => status?.summary !== undefined || status?.queue !== undefined);
    for (const { metadata } of used.slice(0, MAX_ADDED)) {
      const { namespace, name, uid } = metadata;
      await agentActivity.addResident({ namespace, name, uid }, rules.release, signal);
    }
  }
}
