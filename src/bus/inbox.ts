import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import { type Op, remainingMilliseconds } from '../lib/operation.ts';
import type { Delivery, Envelope } from './port.ts';

export interface InboxRules {
  /** How long a delivery may be worked on before it counts as lost and is given to another. */
  leaseMilliseconds: number;
  /** How often a message is delivered at most. */
  deliveries: number;
  /** How many messages may wait. */
  waiting: number;
}

export interface InboxDeps {
  agent: string;
  rules: InboxRules;
  clock: Clock;
  ids: Ids;
  /** Told of a message that is given up. */
  bury(message: Envelope, code: ErrorCode): void;
  /** Ends every wait and every timer. */
  closed: AbortSignal;
}

interface Item {
  message: Envelope;
  deliveries: number;
}

interface Lease {
  item: Item;
  /** Ends the lease's timer. */
  timer: AbortController;
}

/** The messages of one agent, in order of arrival; of each session one at a time. */
export class Inbox {
  readonly #deps: InboxDeps;
  readonly #waiting: Item[] = [];
  readonly #busySessions = new Set<string>();
  readonly #leases = new Map<string, Lease>();
  readonly #receivers: ((delivery: Delivery) => void)[] = [];

  constructor(deps: InboxDeps) {
    this.#deps = deps;
  }

  add(message: Envelope): void {
    if (this.#waiting.length >= this.#deps.rules.waiting) {
      throw new TemperError(
        'TEMPER_QUOTA_EXCEEDED',
        `${this.#deps.rules.waiting} messages wait for agent "${this.#deps.agent}" already; send again later`,
        {
          retry: 'backoff',
        },
      );
    }
    this.#waiting.push({ message, deliveries: 0 });
    this.#dispatch();
  }

  next(op: Op): Promise<Delivery> {
    return new Promise((resolve, reject) => {
      const withdrawn = AbortSignal.any([op.signal, this.#deps.closed]);
      const over = new AbortController();
      const end = (): void => {
        over.abort();
        withdrawn.removeEventListener('abort', withdraw);
      };
      const receive = (delivery: Delivery): void => {
        end();
        resolve(delivery);
      };
      const leave = (error: TemperError): void => {
        end();
        const place = this.#receivers.indexOf(receive);
        if (place !== -1) this.#receivers.splice(place, 1);
        reject(error);
      };
      const withdraw = (): void => leave(new TemperError('TEMPER_CANCELLED', 'waiting for a message was withdrawn'));
      if (withdrawn.aborted) {
        withdraw();
        return;
      }
      withdrawn.addEventListener('abort', withdraw, { once: true });
      const late = (): void =>
        leave(new TemperError('TEMPER_TIMEOUT', `no message for agent "${this.#deps.agent}" in time`));
      this.#after(remainingMilliseconds(op, this.#deps.clock), over.signal, late);
      this.#receivers.push(receive);
      this.#dispatch();
    });
  }

  /** The message of a lease that still holds. */
  held(lease: string): Envelope | undefined {
    return this.#leases.get(lease)?.item.message;
  }

  #dispatch(): void {
    while (this.#receivers.length > 0) {
      const place = this.#waiting.findIndex(({ message }) => !this.#busySessions.has(message.session));
      if (place === -1) return;
      const [item] = this.#waiting.splice(place, 1);
      if (item === undefined) return;
      if (Date.parse(item.message.deadline) <= this.#deps.clock.now().getTime()) {
        this.#deps.bury(item.message, 'TEMPER_TIMEOUT');
        continue;
      }
      this.#receivers.shift()?.(this.#deliver(item));
    }
  }

  #deliver(item: Item): Delivery {
    const lease = this.#deps.ids.next('lease');
    const timer = new AbortController();
    item.deliveries += 1;
    this.#busySessions.add(item.message.session);
    this.#leases.set(lease, { item, timer });
    this.#after(this.#deps.rules.leaseMilliseconds, timer.signal, () => this.#again(this.#take(lease), 0));
    return {
      message: { ...item.message },
      lease,
      ack: async () => this.#free(this.#take(lease)),
      retry: async (afterMilliseconds) => this.#again(this.#take(lease), afterMilliseconds),
      reject: async (code) => {
        const rejected = this.#take(lease);
        this.#deps.bury(rejected.message, code);
        this.#free(rejected);
      },
    };
  }

  /** Ends a lease. Each is ended once; a lease that ran out can do nothing any more. */
  #take(lease: string): Item {
    const held = this.#leases.get(lease);
    if (held === undefined) {
      throw new TemperError(
        'TEMPER_TIMEOUT',
        'this delivery is over: it was settled before, or its lease ran out and the message went to another',
      );
    }
    this.#leases.delete(lease);
    held.timer.abort();
    return held.item;
  }

  /** The session stays busy while its message waits to be tried again, so that no later one overtakes it. */
  #again(item: Item, afterMilliseconds: number): void {
    if (item.deliveries >= this.#deps.rules.deliveries) {
      this.#deps.bury(item.message, 'TEMPER_TIMEOUT');
      this.#free(item);
      return;
    }
    const back = (): void => {
      this.#waiting.unshift(item);
      this.#free(item);
    };
    if (afterMilliseconds <= 0) back();
    else this.#after(afterMilliseconds, this.#deps.closed, back);
  }

  /** Rejects only when aborted, and then there is nothing to do. */
  #after(milliseconds: number, signal: AbortSignal, work: () => void): void {
    const { clock, closed } = this.#deps;
    clock.sleep(milliseconds, AbortSignal.any([signal, closed])).then(work, () => undefined);
  }

  #free(item: Item): void {
    this.#busySessions.delete(item.message.session);
    this.#dispatch();
  }
}
