import type { BusConnection } from './connection.ts';
import { busFailure } from './failures.ts';
import { STREAMS } from './names.ts';

/** Identity of one JetStream store. A store lost with its disk is created again, empty, as a new generation. */
export interface StoreFacts {
  /** RFC 3339. */
  made: string;
  /** The sequence before the first event of this store. Sequences of earlier stores are lower. */
  beginning: number;
}

/**
 * The first event sequence of a store created now: microseconds since the epoch. At less than a million events per second no earlier
 * store has reached it, so every sequence of a lost store is lower than all sequences of the new one.
 */
export function firstPlace(now: Date): number {
  return now.getTime() * 1_000;
}

/** Throws TEMPER_BUS_UNAVAILABLE, also while the streams do not exist. */
export async function storeFacts(connection: BusConnection): Promise<StoreFacts> {
  try {
    const { created, config } = await connection.ask(() => connection.manager.streams.info(STREAMS.events));
    return { made: created, beginning: Math.max(0, (config.first_seq ?? 0) - 1) };
  } catch (error) {
    throw busFailure(error, 'reading the store generation');
  }
}

/** Caches the generation's first sequence per connection: a store cannot be lost while its server runs. */
export class StoreBeginning {
  readonly #connection: BusConnection;
  #known: { since: number; beginning: number } | undefined;

  constructor(connection: BusConnection) {
    this.#connection = connection;
  }

  async get(): Promise<number> {
    await this.#connection.ready();
    const since = this.#connection.state().since.getTime();
    if (this.#known?.since !== since) {
      const { beginning } = await storeFacts(this.#connection);
      this.#known = { since, beginning };
    }
    return this.#known.beginning;
  }
}
