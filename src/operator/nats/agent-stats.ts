import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { LedgerReplica } from '../../nats/ledger/replica.ts';
import { agentAccount, policyAccount } from '../../nats/ledger/spend-summary.ts';
import { createModelHealthStore } from '../../nats/model-health.ts';
import { readDeliveries } from '../../nats/inbox/nats-inbox-store.ts';
import { STREAMS, subjects } from '../../nats/jetstream/names.ts';
import { readStoreGeneration } from '../../nats/jetstream/store-generation.ts';
import { messageCounts } from '../../nats/jetstream/stream-reader.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type ConditionUpdate, reasonOf } from '../conditions.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { AgentRuntimeState, NatsStore, AgentStats } from '../ports.ts';
import {
  type BudgetAccounts,
  withinBudget,
  exhaustedBudget,
  budgetSummary,
  nearlyUsedBudget,
} from './quota-conditions.ts';
import type { NatsLink } from './nats-link.ts';
import { Heartbeats } from './heartbeat/heartbeats.ts';
import { TriggerStats } from './trigger-stats.ts';
import { modelReady, modelFailure, ProviderHealthTracker } from './model-conditions.ts';

export interface NatsAgentStatsDeps {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly log: Logger;
}

const REFRESH_INTERVAL_MS = 10_000;

/**
 * Agent data from NATS: quota usage, provider health, queue lengths and heartbeats. Refreshed as a whole every few seconds in the background,
 * with four requests while nothing changes, so that no reconcile waits for NATS.
 */
export class NatsAgentStats implements AgentStats {
  readonly #deps: NatsAgentStatsDeps;
  readonly #ledger = new LedgerReplica();
  readonly #providers = new ProviderHealthTracker();
  readonly #triggers = new TriggerStats();
  readonly #heartbeats = new Heartbeats();
  #queues: Readonly<Record<string, number>> | undefined;
  #store: NatsStore | undefined;

  constructor(deps: NatsAgentStatsDeps) {
    this.#deps = deps;
  }

  get(agent: StoredAgent, policy: StoredPolicy | undefined): AgentRuntimeState {
    // No data yet: the status does not change.
    if (this.#queues === undefined) return {};
    const time = this.#deps.clock.now().getTime();
    const accounts = this.#accountsOf(agent, policy, time);
    const queue = this.#queues[subjects.inbox(agent.metadata.uid)] ?? 0;
    const hasWork = queue > 0 || (accounts.own?.charged.hour.counts.inputTokens ?? 0) > 0;
    const problem = exhaustedBudget(agent, policy, accounts, time) ?? nearlyUsedBudget(agent, policy, accounts, time);
    const budget = visibleFinding(agent, hasWork, problem, withinBudget());
    const triggers = this.#triggers.of(agent);
    const heartbeat = this.#heartbeats.of(agent, policy);
    const model = visibleFinding(agent, hasWork, modelFailure(agent, this.#providers), modelReady(agent));
    return {
      ...(budget === undefined ? {} : { budget }),
      ...(model === undefined ? {} : { model }),
      ...(triggers === undefined ? {} : { triggers }),
      ...(heartbeat === undefined ? {} : { heartbeat }),
      ...statsOf(agent, accounts, queue),
    };
  }

  store(): NatsStore | undefined {
    return this.#store;
  }

  async *updates(signal: AbortSignal): AsyncIterable<void> {
    const { link, clock, log } = this.#deps;
    while (!signal.aborted) {
      const connection = await link.waitForConnection(signal);
      if (connection === undefined) return;
      try {
        await this.#refresh(connection);
        yield;
      } catch (error) {
        if (link.unavailableSince() === undefined) {
          log.warn({ error: messageOf(error, 200) }, 'agent data cannot be read from NATS; retrying');
        }
      }
      await clock.sleep(REFRESH_INTERVAL_MS, signal).catch(() => undefined);
    }
  }

  async #refresh(connection: JetStreamConnection): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#ledger.refresh(connection, now.getTime());
    this.#providers.update(await createModelHealthStore(connection).list(), now);
    const { createdAt: made } = await readStoreGeneration(connection);
    await this.#triggers.refresh(connection);
    const queues = await messageCounts(connection, STREAMS.inbox, 'temper.inbox.*');
    if (this.#store?.createdAt !== made) this.#store = { createdAt: made, lostMessages: byAgent(this.#queues) };
    this.#queues = queues;
    await this.#heartbeats.refresh(byAgent(queues), now.getTime(), (uids) => readDeliveries(connection, uids));
  }

  #accountsOf({ metadata }: StoredAgent, policy: StoredPolicy | undefined, time: number): BudgetAccounts {
    return {
      own: this.#ledger.get(agentAccount(metadata.uid), time),
      policy: policy === undefined ? undefined : this.#ledger.get(policyAccount(policy.metadata.uid), time),
    };
  }
}

/** Limits status writes: a problem is reported only for agents that have work or already have the condition. */
function visibleFinding<T extends ConditionUpdate>(
  { status }: StoredAgent,
  hasWork: boolean,
  problem: T | undefined,
  fine: T,
): T | undefined {
  const isReported = reasonOf(status?.conditions, fine.type) !== undefined;
  if (problem === undefined) return isReported ? fine : undefined;
  return isReported || hasWork ? problem : undefined;
}

/** An agent without any message or spend so far gets no numbers, which avoids a status write. */
function statsOf(
  agent: StoredAgent,
  accounts: BudgetAccounts,
  queue: number,
): Pick<AgentRuntimeState, 'queue' | 'summary'> {
  const { status } = agent;
  const isUnused = accounts.own === undefined && status?.summary === undefined;
  const summary = isUnused ? undefined : budgetSummary(agent, accounts);
  return {
    ...(queue === 0 && status?.queue === undefined ? {} : { queue }),
    ...(summary === undefined ? {} : { summary }),
  };
}

/** Counts by agent UID, which is the last token of an inbox subject. */
function byAgent(queues: Readonly<Record<string, number>> = {}): Record<string, number> {
  return Object.fromEntries(Object.entries(queues).map(([subject, count]) => [subject.split('.').at(-1) ?? '', count]));
}
