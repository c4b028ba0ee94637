import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { type CallOptions, remainingMs } from '../lib/call-options.ts';
import type { Delivery, Envelope } from './port.ts';

export interface InboxLimits {
  /** Acknowledgement timeout in milliseconds: a delivery not settled by then is delivered to another receiver. */
  ackTimeoutMs: number;
  /** Deliveries of one message; after the last the message is dead-lettered. */
  maxDeliveries: number;
  /** Messages that may wait for the agent. */
  maxWaiting: number;
}

export interface MemoryInboxDeps {
  agent: string;
  rules: InboxLimits;
  clock: Clock;
  ids: IdGenerator;
  /** Called with each message that is dead-lettered. */
  deadLetter(message: Envelope, code: ErrorCode): void;
  /** Ends every wait and every timer. */
  closed: AbortSignal;
}

interface QueuedMessage {
  message: Envelope;
  deliveries: number;
}

interface PendingDelivery {
  item: QueuedMessage;
  /** Cancels the acknowledgement timeout. */
  timer: AbortController;
}

/** Messages of one agent in order of arrival; at most one per session is in flight. */
export class MemoryInbox {
  readonly #deps: MemoryInboxDeps;
  readonly #waiting: QueuedMessage[] = [];
  readonly #busySessions = new Set<string>();
  readonly #pending = new Map<string, PendingDelivery>();
  readonly #receivers: ((delivery: Delivery) => void)[] = [];

  constructor(deps: MemoryInboxDeps) {
    this.#deps = deps;
  }

  add(message: Envelope): void {
    if (this.#waiting.length >= this.#deps.rules.maxWaiting) {
      throw new TemperError(
        'TEMPER_QUOTA_EXCEEDED',
        `agent "${this.#deps.agent}" already has ${this.#deps.rules.maxWaiting} waiting messages; send again later`,
        {
          retry: 'backoff',
        },
      );
    }
    this.#waiting.push({ message, deliveries: 0 });
    this.#dispatch();
  }

  next(op: CallOptions): Promise<Delivery> {
    return new Promise((resolve, reject) => {
      const cancelled = AbortSignal.any([op.signal, this.#deps.closed]);
      const done = new AbortController();
      const end = (): void => {
        done.abort();
        cancelled.removeEventListener('abort', cancel);
      };
      const receive = (delivery: Delivery): void => {
        end();
        resolve(delivery);
      };
      const leave = (error: TemperError): void => {
        end();
        const index = this.#receivers.indexOf(receive);
        if (index !== -1) this.#receivers.splice(index, 1);
        reject(error);
      };
      const cancel = (): void => leave(new TemperError('TEMPER_CANCELLED', 'the wait for a message was cancelled'));
      if (cancelled.aborted) {
        cancel();
        return;
      }
      cancelled.addEventListener('abort', cancel, { once: true });
      const timedOut = (): void =>
        leave(new TemperError('TEMPER_TIMEOUT', `no message for agent "${this.#deps.agent}" in time`));
      this.#after(remainingMs(op, this.#deps.clock), done.signal, timedOut);
      this.#receivers.push(receive);
      this.#dispatch();
    });
  }

  /** The message of a delivery that is still in flight. */
  messageOf(lease: string): Envelope | undefined {
    return this.#pending.get(lease)?.item.message;
  }

  #dispatch(): void {
    while (this.#receivers.length > 0) {
      const index = this.#waiting.findIndex(({ message }) => !this.#busySessions.has(message.session));
      if (index === -1) return;
      const [item] = this.#waiting.splice(index, 1);
      if (item === undefined) return;
      if (Date.parse(item.message.deadline) <= this.#deps.clock.now().getTime()) {
        this.#deps.deadLetter(item.message, 'TEMPER_TIMEOUT');
        continue;
      }
      this.#receivers.shift()?.(this.#deliver(item));
    }
  }

  #deliver(item: QueuedMessage): Delivery {
    const lease = this.#deps.ids.next('lease');
    const timer = new AbortController();
    item.deliveries += 1;
    this.#busySessions.add(item.message.session);
    this.#pending.set(lease, { item, timer });
    this.#after(this.#deps.rules.ackTimeoutMs, timer.signal, () => this.#redeliver(this.#take(lease), 0));
    return {
      message: { ...item.message },
      token: lease,
      ack: async () => this.#free(this.#take(lease)),
      retry: async (afterMilliseconds) => this.#redeliver(this.#take(lease), afterMilliseconds),
      reject: async (code) => {
        const rejected = this.#take(lease);
        this.#deps.deadLetter(rejected.message, code);
        this.#free(rejected);
      },
    };
  }

  /** Removes a pending delivery. Throws when it was settled before or its acknowledgement timeout passed. */
  #take(lease: string): QueuedMessage {
    const held = this.#pending.get(lease);
    if (held === undefined) {
      throw new TemperError(
        'TEMPER_TIMEOUT',
        'this delivery has ended: it was acknowledged before, or it timed out and the message was redelivered',
      );
    }
    this.#pending.delete(lease);
    held.timer.abort();
    return held.item;
  }

  /** The session stays busy while its message waits for redelivery, so that no later message overtakes it. */
  #redeliver(item: QueuedMessage, afterMilliseconds: number): void {
    if (item.deliveries >= this.#deps.rules.maxDeliveries) {
      this.#deps.deadLetter(item.message, 'TEMPER_TIMEOUT');
      this.#free(item);
      return;
    }
    const requeue = (): void => {
      this.#waiting.unshift(item);
      this.#free(item);
    };
    if (afterMilliseconds <= 0) requeue();
    else this.#after(afterMilliseconds, this.#deps.closed, requeue);
  }

  /** The sleep rejects only when aborted; then no work is left. */
  #after(milliseconds: number, signal: AbortSignal, work: () => void): void {
    const { clock, closed } = this.#deps;
    clock.sleep(milliseconds, AbortSignal.any([signal, closed])).then(work, () => undefined);
  }

  #free(item: QueuedMessage): void {
    this.#busySessions.delete(item.message.session);
    this.#dispatch();
  }
}
