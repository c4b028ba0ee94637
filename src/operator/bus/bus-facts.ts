import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { BusConnection } from '../../nats/connection.ts';
import { LedgerCopy } from '../../nats/ledger-copy.ts';
import { agentAccount, policyAccount } from '../../nats/ledger-spend.ts';
import { modelHealthStore } from '../../nats/model-health.ts';
import { STREAMS, subjects } from '../../nats/names.ts';
import { storeFacts } from '../../nats/store-beginning.ts';
import { countsOf } from '../../nats/stored.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Finding, reasonOf } from '../conditions.ts';
import type { StoredAgent, StoredPolicy } from '../kube-types.ts';
import type { AgentFacts, BusStore, Facts } from '../ports.ts';
import { type Accounts, budgetFine, budgetProblem, budgetSummary } from './budget.ts';
import type { BusLink } from './link.ts';
import { modelFine, modelError, Providers } from './models.ts';

export interface BusFactsDeps {
  readonly link: BusLink;
  readonly clock: Clock;
  readonly log: Logger;
}

const REFRESH_INTERVAL_MS = 10_000;

/**
 * Agent data from NATS: quota usage, provider health and queue lengths. Refreshed as a whole every few seconds in the background, with
 * three requests while nothing changes, so that no reconcile waits for NATS.
 */
export class BusFacts implements Facts {
  readonly #deps: BusFactsDeps;
  readonly #ledger = new LedgerCopy();
  readonly #providers = new Providers();
  #queues: Readonly<Record<string, number>> | undefined;
  #store: BusStore | undefined;

  constructor(deps: BusFactsDeps) {
    this.#deps = deps;
  }

  of(agent: StoredAgent, policy: StoredPolicy | undefined): AgentFacts {
    // No data yet: the status does not change.
    if (this.#queues === undefined) return {};
    const time = this.#deps.clock.now().getTime();
    const accounts = this.#accountsOf(agent, policy, time);
    const queue = this.#queues[subjects.inbox(agent.metadata.uid)] ?? 0;
    const hasWork = queue > 0 || (accounts.own?.charged.hour.counts.inputTokens ?? 0) > 0;
    const budget = visibleFinding(agent, hasWork, budgetProblem(agent, policy, accounts, time), budgetFine());
    const model = visibleFinding(agent, hasWork, modelError(agent, this.#providers), modelFine(agent));
    return {
      ...(budget === undefined ? {} : { budget }),
      ...(model === undefined ? {} : { model }),
      ...statsOf(agent, accounts, queue),
    };
  }

  store(): BusStore | undefined {
    return this.#store;
  }

  async *learned(signal: AbortSignal): AsyncIterable<void> {
    const { link, clock, log } = this.#deps;
    while (!signal.aborted) {
      const connection = await link.connected(signal);
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

  async #refresh(connection: BusConnection): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#ledger.refresh(connection, now.getTime());
    this.#providers.learn(await modelHealthStore(connection).list(), now);
    const { made } = await storeFacts(connection);
    const queues = await countsOf(connection, STREAMS.inbox, 'temper.inbox.*');
    if (this.#store?.made !== made) this.#store = { made, lost: byAgent(this.#queues) };
    this.#queues = queues;
  }

  #accountsOf({ metadata }: StoredAgent, policy: StoredPolicy | undefined, time: number): Accounts {
    return {
      own: this.#ledger.of(agentAccount(metadata.uid), time),
      policy: policy === undefined ? undefined : this.#ledger.of(policyAccount(policy.metadata.uid), time),
    };
  }
}

/** Limits status writes: a problem is reported only for agents that have work or already have the condition. */
function visibleFinding<T extends Finding>(
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
function statsOf(agent: StoredAgent, accounts: Accounts, queue: number): Pick<AgentFacts, 'queue' | 'summary'> {
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
