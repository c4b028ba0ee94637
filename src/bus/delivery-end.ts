import { TemperError } from '../lib/errors.ts';

/**
 * Lets one call end a delivery: after `ack`, `retry` or `reject` has succeeded, each further call throws TEMPER_DELIVERY_LOST. A call that
 * failed did not end the delivery and may be repeated.
 */
export class DeliveryEnd {
  #ended = false;
  #ending: Promise<void> | undefined;

  /** Runs `work`, which ends the delivery. Concurrent calls run one after the other. */
  async end(work: () => Promise<void>): Promise<void> {
    while (this.#ending !== undefined) await this.#ending.catch(() => undefined);
    this.assertOpen();
    this.#ending = work();
    try {
      await this.#ending;
      this.#ended = true;
    } finally {
      this.#ending = undefined;
    }
  }

  /** Throws TEMPER_DELIVERY_LOST when the delivery has ended. */
  assertOpen(): void {
    if (this.#ended) throw deliveryLost();
  }
}

export function deliveryLost(cause?: unknown): TemperError {
  const message = 'this delivery has ended: the message was acknowledged, redelivered or dead-lettered';
  return new TemperError('TEMPER_DELIVERY_LOST', message, cause === undefined ? {} : { cause });
}
