import type { CallOptions } from '../lib/call-options.ts';
import type { BusEvent } from './port.ts';

export interface EventHub {
  publish(event: BusEvent): void;
  /** Events of these types from now on, until the signal aborts. */
  subscribe(types: readonly string[], op: CallOptions): AsyncIterable<BusEvent>;
}

/** Queued events per subscriber. Beyond it the oldest are dropped, and a `bus.lost` event carries their number. */
const MAX_LAG = 1_000;

interface Subscriber {
  types: ReadonlySet<string>;
  waiting: BusEvent[];
  lost: number;
  wake: () => void;
}

export function createEventHub(): EventHub {
  const subscribers = new Set<Subscriber>();
  return {
    publish(event) {
      for (const subscriber of subscribers) {
        if (!subscriber.types.has(event.type)) continue;
        subscriber.waiting.push(event);
        if (subscriber.waiting.length > MAX_LAG) {
          subscriber.waiting.shift();
          subscriber.lost += 1;
        }
        subscriber.wake();
      }
    },
    subscribe(types, op) {
      const subscriber: Subscriber = { types: new Set(types), waiting: [], lost: 0, wake: () => undefined };
      // Subscribes at this call, not at the reader's first `next()`.
      subscribers.add(subscriber);
      return read(subscriber, op.signal, () => subscribers.delete(subscriber));
    },
  };
}

async function* read(subscriber: Subscriber, signal: AbortSignal, leave: () => void): AsyncGenerator<BusEvent> {
  const onAbort = (): void => subscriber.wake();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      if (subscriber.lost > 0) {
        const { lost } = subscriber;
        subscriber.lost = 0;
        yield { type: 'bus.lost', agent: '', time: subscriber.waiting[0]?.time ?? '', data: { events: lost } };
      }
      const event = subscriber.waiting.shift();
      if (event !== undefined) {
        yield event;
        continue;
      }
      await new Promise<void>((resolve) => {
        subscriber.wake = resolve;
      });
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    leave();
  }
}
