import { type Account, toCounts, checkQuota, emptyAccount, rollAccount } from '../../ledger/account.ts';
import type { AccountHolder } from '../../ledger/ledger.ts';
import type { Denial } from '../../ledger/port.ts';
import type { Clock } from '../../lib/clock.ts';

/** Per-minute call limit. Each gateway counts locally and enforces its share of the limit, without shared state. */
export class MinuteLimiter {
  readonly #clock: Clock;
  readonly #gatewayCount: () => number;
  readonly #accounts = new Map<string, Account>();

  constructor(clock: Clock, gatewayCount: () => number) {
    this.#clock = clock;
    this.#gatewayCount = gatewayCount;
  }

  /** Counts calls immediately, also calls that fail later. Returns a denial when this gateway's share of a limit is exceeded. */
  acquire(holders: readonly AccountHolder[], toolCalls: number): Denial | undefined {
    if (toolCalls === 0) return undefined;
    const time = this.#clock.now().getTime();
    const accounts = holders.map(({ name }) => this.#account(name));
    for (const [index, { quotas, prefix }] of holders.entries()) {
      const { toolCallsPerMinute: limit } = quotas;
      const account = accounts[index];
      if (limit === undefined || account === undefined) continue;
      const share = Math.ceil(limit / Math.max(1, this.#gatewayCount()));
      const denial = checkQuota(account, { toolCallsPerMinute: share }, prefix, toCounts({ toolCalls }), time);
      if (denial !== undefined) return { ...denial, limit };
    }
    for (const { minute } of accounts) minute.counts.toolCalls += toolCalls;
    return undefined;
  }

  count(name: string): number {
    return this.#account(name).minute.counts.toolCalls;
  }

  removeExpired(): void {
    const oldest = this.#clock.now().getTime() - 60_000;
    for (const [name, { minute }] of this.#accounts) if (minute.start < oldest) this.#accounts.delete(name);
  }

  #account(name: string): Account {
    const account = this.#accounts.get(name) ?? emptyAccount();
    this.#accounts.set(name, account);
    rollAccount(account, this.#clock.now().getTime());
    return account;
  }
}
