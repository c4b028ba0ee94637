import { type Account, type Counts, countsOf, openAccount, rollAccount } from '../ledger/account.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import { unavailable } from './ledger-commit.ts';
import { newDocument } from './ledger-document.ts';
import { accountKey } from './ledger-keys.ts';
import type { LedgerStore } from './ledger-store.ts';

/** What an account had spent when it was last written down elsewhere. */
export interface SeedAccount {
  account: string;
  windows: readonly { window: 'hour' | 'day' | 'month'; start: Date; spent: Partial<Counts> }[];
}

interface Marker {
  epoch: string;
  open: boolean;
}

/** No account is named so: those have a kind before the first dot. */
const MARKER = 'ledger-state';

/** Whether the counters are what they were, or began anew: a bucket without its marker was wiped. */
export class LedgerSeed {
  readonly #deps: { store: LedgerStore; clock: Clock; ids: Ids };

  constructor(deps: { store: LedgerStore; clock: Clock; ids: Ids }) {
    this.#deps = deps;
  }

  async isOpen(): Promise<boolean> {
    return (await this.#read())?.marker.open === true;
  }

  /** Throws TEMPER_LEDGER_UNAVAILABLE until the ledger is open. */
  async epoch(): Promise<string> {
    const found = await this.#read();
    if (found?.marker.open === true) return found.marker.epoch;
    const message = 'the spend counters are empty and not restored yet; nothing is spent until they are';
    throw new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff' });
  }

  /** The marker first, closed, so that all who seed at once write under one epoch; open when every account is there. */
  async open(accounts: readonly SeedAccount[]): Promise<void> {
    const { store, ids } = this.#deps;
    try {
      const first: Marker = { epoch: ids.next('epoch'), open: false };
      if ((await this.#read()) === undefined) await store.write(MARKER, { ...first }, 0);
      const begun = await this.#read();
      if (begun === undefined || begun.marker.open) return;
      const { epoch } = begun.marker;
      for (const seed of accounts) await store.write(accountKey(seed.account), this.#document(seed, epoch), 0);
      await store.write(MARKER, { epoch, open: true }, begun.revision);
    } catch (error) {
      throw unavailable(error);
    }
  }

  async #read(): Promise<{ marker: Marker; revision: number } | undefined> {
    const stored = await this.#deps.store.get(MARKER).catch((error: unknown) => {
      throw unavailable(error);
    });
    if (stored === undefined) return undefined;
    const { value, revision } = stored;
    if (!isJsonObject(value) || typeof value['epoch'] !== 'string') return undefined;
    return { marker: { epoch: value['epoch'], open: value['open'] === true }, revision };
  }

  /** Spend of windows that are over counts in none. */
  #document({ windows }: SeedAccount, epoch: string): Json {
    const document = newDocument(epoch);
    const account: Account = openAccount();
    rollAccount(account, this.#deps.clock.now().getTime());
    for (const { window, start, spent } of windows) {
      if (start.getTime() >= account[window].start)
        account[window] = { start: start.getTime(), counts: countsOf(spent) };
    }
    return JSON.parse(JSON.stringify({ ...document, spent: account }));
  }
}
