import { TemperError } from '../../lib/errors.ts';
import type { StampedEvent } from '../../tools/events.ts';

interface Work {
  lease: string;
  session: string;
  rootMessage: string;
  signal: AbortSignal;
}

/** The one message that is worked on. Everything done meanwhile is done under its lease. */
export class WorkInHand {
  #work: Work | undefined;

  /** Runs `work` as the message in hand. */
  async during<T>(work: Work, run: () => Promise<T>): Promise<T> {
    this.#work = work;
    try {
      return await run();
    } finally {
      this.#work = undefined;
    }
  }

  /** Throws TEMPER_LEASE_LOST when no message is worked on. */
  readonly lease = (): string => this.#held().lease;

  readonly signal = (): AbortSignal => this.#held().signal;

  stamp(): Pick<StampedEvent, 'session' | 'rootMessage'> {
    const { session, rootMessage } = this.#held();
    return { session, rootMessage };
  }

  #held(): Work {
    if (this.#work !== undefined) return this.#work;
    throw new TemperError('TEMPER_LEASE_LOST', 'no message is worked on');
  }
}
