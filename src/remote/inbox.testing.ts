import type { Envelope } from '../bus/port.ts';
import { TemperError } from '../lib/errors.ts';
import { randomIds } from '../lib/ids.ts';
import type { LeaseAnswer, WireDelivery } from './wire.ts';

type End = Exclude<LeaseAnswer, { action: 'extend' }>;

/** The inbox of one agent: messages one at a time, under leases that run out. */
export class InboxDouble {
  leaseMilliseconds = 30_000;
  readonly #waiting: Envelope[] = [];
  readonly #leases = new Map<string, { message: Envelope; timer: NodeJS.Timeout }>();
  readonly #ends = new Map<string, PromiseWithResolvers<End>>();
  readonly #receivers = new Set<() => void>();
  deliveries = 0;
  extensions = 0;

  /** Resolves with how the message ended. */
  add(message: Envelope): Promise<End> {
    const end = Promise.withResolvers<End>();
    this.#ends.set(message.id, end);
    this.#put(message);
    return end.promise;
  }

  async next(waitSeconds: number, signal: AbortSignal): Promise<WireDelivery | undefined> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(waitSeconds * 1_000)]);
    while (this.#waiting.length === 0 || this.#leases.size > 0) {
      if (over.aborted) return undefined;
      await new Promise<void>((resolve) => {
        this.#receivers.add(resolve);
        over.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    const message = signal.aborted ? undefined : this.#waiting.shift();
    if (message === undefined) return undefined;
    this.deliveries += 1;
    const lease = `lease-${this.deliveries}`;
    this.#leases.set(lease, { message, timer: this.#timer(lease) });
    return { message, lease, leaseMilliseconds: this.leaseMilliseconds };
  }

  /** The message of a lease that still holds. */
  held(lease: string): Envelope {
    const held = this.#leases.get(lease);
    if (held === undefined) throw refused(409, 'TEMPER_LEASE_LOST', 'this lease is over');
    return held.message;
  }

  settle(answer: LeaseAnswer): undefined {
    const message = this.held(answer.lease);
    clearTimeout(this.#leases.get(answer.lease)?.timer);
    if (answer.action === 'extend') {
      this.extensions += 1;
      this.#leases.set(answer.lease, { message, timer: this.#timer(answer.lease) });
      return;
    }
    this.#leases.delete(answer.lease);
    if (answer.action === 'retry') setTimeout(() => this.#put(message), answer.afterMilliseconds).unref();
    else this.#ends.get(message.id)?.resolve(answer);
    this.#wake();
  }

  /** Ends a lease as if its time were over. */
  lose(): void {
    for (const lease of this.#leases.keys()) this.#expire(lease);
  }

  close(): void {
    for (const { timer } of this.#leases.values()) clearTimeout(timer);
    this.#leases.clear();
    this.#wake();
  }

  #timer(lease: string): NodeJS.Timeout {
    return setTimeout(() => this.#expire(lease), this.leaseMilliseconds);
  }

  #expire(lease: string): void {
    const held = this.#leases.get(lease);
    if (held === undefined) return;
    clearTimeout(held.timer);
    this.#leases.delete(lease);
    this.#put(held.message);
  }

  #put(message: Envelope): void {
    this.#waiting.unshift(message);
    this.#wake();
  }

  #wake(): void {
    for (const receive of this.#receivers) receive();
    this.#receivers.clear();
  }
}

/** A message as it waits in an inbox. */
export function aMessage(changes: Partial<Envelope> = {}): Envelope {
  const id = randomIds.next('msg');
  return {
    id,
    from: 'person/kim',
    to: 'analyst',
    session: 's-1',
    text: 'hello',
    root: id,
    depth: 0,
    deadline: new Date(Date.now() + 600_000).toISOString(),
    time: new Date().toISOString(),
    ...changes,
  };
}

export function refused(status: number, code: TemperError['code'], message: string): TemperError {
  return new TemperError(code, message, { details: { status } });
}
