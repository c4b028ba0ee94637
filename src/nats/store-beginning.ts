import type { BusConnection } from './connection.ts';
import { busFailure } from './failures.ts';
import { STREAMS } from './names.ts';

/** What one store of the bus calls its own: lost with its disk, it is made anew, empty. */
export interface StoreFacts {
  /** RFC 3339. */
  made: string;
  /** The place before the first that a line of an event can have; places in stores before this one are lower. */
  beginning: number;
}

/**
 * The number of the first line in a store made now. Lines are counted from a number that no store made earlier has come to, at less than a
 * million lines a second: a place in what was lost is before all there is.
 */
export function firstPlace(now: Date): number {
  return now.getTime() * 1_000;
}

/** Throws TEMPER_BUS_UNAVAILABLE while there are no streams as well. */
export async function storeFacts(connection: BusConnection): Promise<StoreFacts> {
  try {
    const { created, config } = await connection.ask(() => connection.manager.streams.info(STREAMS.events));
    return { made: created, beginning: Math.max(0, (config.first_seq ?? 0) - 1) };
  } catch (error) {
    throw busFailure(error, 'asking for the store of the bus');
  }
}

/** The same, asked once for each time the connection was made: no store is lost while its server runs. */
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
