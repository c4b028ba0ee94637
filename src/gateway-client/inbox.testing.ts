import type { Envelope } from '../bus/port.ts';
import { Notifier } from '../lib/async/notifier.ts';
import { TemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import type { DeliveryOutcome, PodDelivery } from '../gateway-api/pod-api.ts';

type FinalOutcome = Exclude<DeliveryOutcome, { action: 'extend' }>;

/** The inbox of one agent: one message of each session in flight at a time, with an acknowledgement timeout. */
export class InboxDouble {
  ackTimeoutMs = 30_000;
  readonly #waiting: Envelope[] = [];
  readonly #inFlight = new Map<string, { message: Envelope; timer: NodeJS.Timeout }>();
  readonly #outcomes = new Map<string, PromiseWithResolvers<FinalOutcome>>();
  readonly #changes = new Notifier();
  #failure: Error | undefined;
  deliveries = 0;
  extensions = 0;

  /** Resolves with the final outcome of the message. Rejects after `fail`. */
  add(message: Envelope): Promise<FinalOutcome> {
    const end = Promise.withResolvers<FinalOutcome>();
    this.#outcomes.set(message.id, end);
    // The test may await the outcome later.
    end.promise.catch(() => undefined);
    if (this.#failure !== undefined) end.reject(this.#failure);
    this.#put(message);
    return end.promise;
  }

  async next(waitSeconds: number, signal: AbortSignal): Promise<PodDelivery | undefined> {
    const ended = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(waitSeconds * 1_000))]);
    let index = this.#firstFree();
    while (index === -1) {
      if (ended.aborted) return undefined;
      await this.#changes.wait(ended);
      index = this.#firstFree();
    }
    const [message] = signal.aborted ? [] : this.#waiting.splice(index, 1);
    if (message === undefined) return undefined;
    this.deliveries += 1;
    const deliveryToken = `delivery-${this.deliveries}`;
    this.#inFlight.set(deliveryToken, { message, timer: this.#timer(deliveryToken) });
    return { message, deliveryToken, ackTimeoutMs: this.ackTimeoutMs };
  }

  /** The message of a delivery that is still in flight. */
  messageOf(deliveryToken: string): Envelope {
    const held = this.#inFlight.get(deliveryToken);
    if (held === undefined) throw refused(409, 'TEMPER_DELIVERY_LOST', 'this delivery has ended');
    return held.message;
  }

  applyOutcome(answer: DeliveryOutcome): undefined {
    const message = this.messageOf(answer.deliveryToken);
    clearTimeout(this.#inFlight.get(answer.deliveryToken)?.timer);
    if (answer.action === 'extend') {
      this.extensions += 1;
      this.#inFlight.set(answer.deliveryToken, { message, timer: this.#timer(answer.deliveryToken) });
      return;
    }
    this.#inFlight.delete(answer.deliveryToken);
    if (answer.action === 'retry') setTimeout(() => this.#put(message), answer.delayMs).unref();
    else this.#outcomes.get(message.id)?.resolve(answer);
    this.#wake();
  }

  /** Expires every delivery in flight. */
  expireAll(): void {
    for (const deliveryToken of this.#inFlight.keys()) this.#expire(deliveryToken);
  }

  /** The oldest message of a session without one in flight; -1 when there is none. */
  #firstFree(): number {
    const busy = new Set([...this.#inFlight.values()].map(({ message }) => message.session));
    return this.#waiting.findIndex(({ session }) => !busy.has(session));
  }

  /** Rejects the outcomes of all messages, when the pod cannot process them. */
  fail(error: Error): void {
    this.#failure = error;
    for (const { reject } of this.#outcomes.values()) reject(error);
  }

  close(): void {
    for (const { timer } of this.#inFlight.values()) clearTimeout(timer);
    this.#inFlight.clear();
    this.#wake();
  }

  #timer(deliveryToken: string): NodeJS.Timeout {
    return setTimeout(() => this.#expire(deliveryToken), this.ackTimeoutMs);
  }

  #expire(deliveryToken: string): void {
    const held = this.#inFlight.get(deliveryToken);
    if (held === undefined) return;
    clearTimeout(held.timer);
    this.#inFlight.delete(deliveryToken);
    this.#put(held.message);
  }

  #put(message: Envelope): void {
    this.#waiting.unshift(message);
    this.#wake();
  }

  #wake(): void {
    this.#changes.notifyAll();
  }
}

/** A message as an inbox stores it. */
export function aMessage(changes: Partial<Envelope> = {}): Envelope {
  const id = ulids.next('msg');
  return {
    id,
    from: 'user/kim',
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
