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
import { modelFine, modelProblem, Providers } from './models.ts';

export interface BusFactsDeps {
  readonly link: BusLink;
  readonly clock: Clock;
  readonly log: Logger;
}

const LEARN_EVERY = 10_000;

/**
 * What the bus knows of agents: the ledger, how providers do, how many messages wait. Read as a whole every few seconds, three questions
 * while nothing changes, so that no reconcile waits for it.
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
    // Nothing was learned yet: what stands in the status stays.
    if (this.#queues === undefined) return {};
    const time = this.#deps.clock.now().getTime();
    const accounts = this.#accountsOf(agent, policy, time);
    const queue = this.#queues[subjects.inbox(agent.metadata.uid)] ?? 0;
    const isAtWork = queue > 0 || (accounts.own?.charged.hour.counts.inputTokens ?? 0) > 0;
    const budget = toTell(agent, isAtWork, budgetProblem(agent, policy, accounts, time), budgetFine());
    const model = toTell(agent, isAtWork, modelProblem(agent, this.#providers), modelFine(agent));
    return {
      ...(budget === undefined ? {} : { budget }),
      ...(model === undefined ? {} : { model }),
      ...numbersOf(agent, accounts, queue),
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
        await this.#learn(connection);
        yield;
      } catch (error) {
        if (link.unavailableSince() === undefined) {
          log.warn({ error: messageOf(error, 200) }, 'the bus did not say how agents do; it is asked again');
        }
      }
      await clock.sleep(LEARN_EVERY, signal).catch(() => undefined);
    }
  }

  async #learn(connection: BusConnection): Promise<void> {
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

/** A provider's bad hour and a spent budget are told of those they hold up, and not written into a thousand statuses. */
function toTell<T extends Finding>(
  { status }: StoredAgent,
  isAtWork: boolean,
  problem: T | undefined,
  fine: T,
): T | undefined {
  const isTold = reasonOf(status?.conditions, fine.type) !== undefined;
  if (problem === undefined) return isTold ? fine : undefined;
  return isTold || isAtWork ? problem : undefined;
}

/** An agent that never had a message, nor spent anything, is not written to say so. */
function numbersOf(agent: StoredAgent, accounts: Accounts, queue: number): Pick<AgentFacts, 'queue' | 'summary'> {
  const { status } = agent;
  const isSilent = accounts.own === undefined && status?.summary === undefined;
  const summary = isSilent ? undefined : budgetSummary(agent, accounts);
  return {
    ...(queue === 0 && status?.queue === undefined ? {} : { queue }),
    ...(summary === undefined ? {} : { summary }),
  };
}

/** Counts by the subject of an inbox, which ends in the agent's uid. */
function byAgent(queues: Readonly<Record<string, number>> = {}): Record<string, number> {
  return Object.fromEntries(Object.entries(queues).map(([subject, count]) => [subject.split('.').at(-1) ?? '', count]));
}
