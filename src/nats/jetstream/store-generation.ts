import type { JetStreamConnection } from '../connection/connection.ts';
import { natsError } from '../connection/errors.ts';
import { STREAMS } from './names.ts';

/** Identity of one JetStream store. A store lost with its disk is created again, empty, as a new generation. */
export interface StoreGeneration {
  /** RFC 3339. */
  createdAt: string;
  /** The sequence before the first event of this store. Sequences of earlier stores are lower. */
  baseSequence: number;
}

/**
 * The first event sequence of a store created now: microseconds since the epoch. At less than a million events per second no earlier
 * store has reached it, so every sequence of a lost store is lower than all sequences of the new one.
 */
export function initialSequence(now: Date): number {
  return now.getTime() * 1_000;
}

/** Throws TEMPER_BUS_UNAVAILABLE, also while the streams do not exist. */
export async function readStoreGeneration(connection: JetStreamConnection): Promise<StoreGeneration> {
  try {
    const { created, config } = await connection.request(() => connection.manager.streams.info(STREAMS.events));
    return { createdAt: created, baseSequence: Math.max(0, (config.first_seq ?? 0) - 1) };
  } catch (error) {
    throw natsError(error, 'reading the store generation');
  }
}

/** Caches the generation's first sequence per connection: a store cannot be lost while its server runs. */
export class BaseSequenceCache {
  readonly #connection: JetStreamConnection;
  #known: { since: number; beginning: number } | undefined;

  constructor(connection: JetStreamConnection) {
    this.#connection = connection;
  }

  async get(): Promise<number> {
    await this.#connection.ready();
    const since = this.#connection.state().since.getTime();
    if (this.#known?.since !== since) {
      const { baseSequence: beginning } = await readStoreGeneration(this.#connection);
      this.#known = { since, beginning };
    }
    return this.#known.beginning;
  }
}
