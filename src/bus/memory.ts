import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { createEventHub } from './event-hub.ts';
import { MemoryInbox, type InboxLimits } from './inbox.ts';
import type { Bus, BusEvent, Delivery, MessageDraft, Envelope, Receipt } from './port.ts';

/** A message that will not be delivered again. */
interface MemoryDeadLetter {
  message: Envelope;
  code: ErrorCode;
}

/** One message bus and its views per client. An agent sends only while it works on a message, so that every chain keeps its root. */
export interface BusHub {
  /** A user, a schedule or a service: its messages start new chains. */
  client(name: string): Bus;
  /** An agent without a delivery in flight: it receives. Sending throws TEMPER_POLICY_DENIED. */
  agent(name: string): Bus;
  /** An agent that works on a delivery: its messages carry the delivery's root and deadline, one level deeper. */
  within(agent: string, delivery: Delivery): Bus;
  publish(event: BusEvent): void;
  /** The latest, oldest first. */
  deadLetters(): readonly MemoryDeadLetter[];
  /** Ends every wait and every timer. */
  close(): void;
}

export interface MemoryBusOptions extends Partial<InboxLimits> {
  clock: Clock;
  ids: IdGenerator;
  /** Milliseconds from the first message of a chain to the deadline of the chain. Default one hour. */
  chainMilliseconds?: number;
}

const MAX_DEPTH = 5;
const MAX_KEYS = 10_000;
const MAX_DEAD_LETTERS = 1_000;

/** Keeps everything in this process: undelivered messages are lost when it ends. */
export function createMemoryBus(options: MemoryBusOptions): BusHub {
  return new MemoryBus(options);
}

class MemoryBus implements BusHub {
  readonly #options: MemoryBusOptions;
  readonly #rules: InboxLimits;
  readonly #inboxes = new Map<string, MemoryInbox>();
  readonly #receipts = new Map<string, string>();
  readonly #dead: MemoryDeadLetter[] = [];
  readonly #events = createEventHub();
  readonly #closed = new AbortController();

  constructor(options: MemoryBusOptions) {
    this.#options = options;
    const {
      ackTimeoutMs: leaseMilliseconds = 600_000,
      maxDeliveries: deliveries = 5,
      maxWaiting: waiting = 1_000,
    } = options;
    this.#rules = { ackTimeoutMs: leaseMilliseconds, maxDeliveries: deliveries, maxWaiting: waiting };
  }

  client(name: string): Bus {
    return this.#busOf(name, (draft, op) => this.#send(name, draft, op));
  }

  agent(name: string): Bus {
    return this.#busOf(name, () => noDelivery(name));
  }

  within(agent: string, delivery: Delivery): Bus {
    return this.#busOf(agent, (draft, op) => {
      const held = this.#inbox(agent).messageOf(delivery.token);
      if (held === undefined) return noDelivery(agent);
      return this.#send(agent, draft, op, { root: held.root, depth: held.depth + 1, deadline: held.deadline });
    });
  }

  publish(event: BusEvent): void {
    this.#events.publish(event);
  }

  deadLetters(): readonly MemoryDeadLetter[] {
    return [...this.#dead];
  }

  close(): void {
    this.#closed.abort();
  }

  #busOf(name: string, send: (draft: MessageDraft, op: CallOptions) => Receipt): Bus {
    return {
      send: async (draft, op) => send(draft, op),
      next: (op) => this.#inbox(name).next(op),
      events: (types, op) => this.#events.subscribe(types, op),
    };
  }

  #send(from: string, draft: MessageDraft, op: CallOptions, chain?: MessageChain): Receipt {
    const key = `${from}\n${op.key}`;
    const previous = this.#receipts.get(key);
    if (previous !== undefined) return { id: previous, duplicate: true };
    const { to, session, text } = draft;
    const id = this.#options.ids.next('msg');
    const { root, depth, deadline } = chain ?? this.#newChain(id);
    if (depth > MAX_DEPTH) {
      throw new TemperError(
        'TEMPER_MESSAGE_DEPTH',
        `a message from "${from}" to "${to}" would be ${depth} deep in its chain; ${MAX_DEPTH} is allowed`,
      );
    }
    const time = this.#options.clock.now().toISOString();
    this.#inbox(to).add({ to, session, text, id, from, root, depth, deadline, time });
    this.#receipts.set(key, id);
    if (this.#receipts.size > MAX_KEYS) this.#receipts.delete(this.#receipts.keys().next().value ?? '');
    return { id, duplicate: false };
  }

  #newChain(id: string): MessageChain {
    const { clock, chainMilliseconds = 3_600_000 } = this.#options;
    return { root: id, depth: 0, deadline: new Date(clock.now().getTime() + chainMilliseconds).toISOString() };
  }

  #inbox(agent: string): MemoryInbox {
    const { clock, ids } = this.#options;
    const deadLetter = (message: Envelope, code: ErrorCode): void => this.#deadLetter(message, code);
    const inbox =
      this.#inboxes.get(agent) ??
      new MemoryInbox({ agent, rules: this.#rules, clock, ids, deadLetter, closed: this.#closed.signal });
    this.#inboxes.set(agent, inbox);
    return inbox;
  }

  #deadLetter(message: Envelope, code: ErrorCode): void {
    this.#dead.push({ message, code });
    if (this.#dead.length > MAX_DEAD_LETTERS) this.#dead.shift();
    const { id, root, session, to } = message;
    const time = this.#options.clock.now().toISOString();
    this.#events.publish({ type: 'message.dead', agent: to, time, data: { id, root, session, code } });
  }
}

interface MessageChain {
  root: string;
  depth: number;
  deadline: string;
}

function noDelivery(agent: string): never {
  throw new TemperError(
    'TEMPER_POLICY_DENIED',
    `agent "${agent}" has no delivery in flight; it may send only while it works on a message`,
    {
      details: { rule: 'message.root' },
    },
  );
}
