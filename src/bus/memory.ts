import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import type { Op } from '../lib/operation.ts';
import { createEventHub } from './event-hub.ts';
import { Inbox, type InboxRules } from './inbox.ts';
import type { Bus, BusEvent, Delivery, Draft, Envelope, Receipt } from './port.ts';

/** A message that nobody will get any more. */
interface DeadLetter {
  message: Envelope;
  code: ErrorCode;
}

/** A bus, seen by each of its users. An agent sends only while it works on a message, so that no chain forgets its root. */
export interface BusHub {
  /** A person, a schedule or a service: its messages begin new chains. */
  client(name: string): Bus;
  /** An agent between messages: it receives. Sending throws TEMPER_POLICY_DENIED. */
  agent(name: string): Bus;
  /** An agent at work on a delivery: what it sends carries the delivery's root and deadline, one level deeper. */
  within(agent: string, delivery: Delivery): Bus;
  publish(event: BusEvent): void;
  /** The latest, oldest first. */
  deadLetters(): readonly DeadLetter[];
  /** Ends every wait and every timer. */
  close(): void;
}

export interface MemoryBusOptions extends Partial<InboxRules> {
  clock: Clock;
  ids: Ids;
  /** How long a chain of messages may take, from the first one's sending. Default one hour. */
  chainMilliseconds?: number;
}

const MAXIMUM_DEPTH = 5;
const REMEMBERED_KEYS = 10_000;
const REMEMBERED_DEAD_LETTERS = 1_000;

/** All in this process: what is not delivered is lost with it. */
export function createMemoryBus(options: MemoryBusOptions): BusHub {
  return new MemoryBus(options);
}

class MemoryBus implements BusHub {
  readonly #options: MemoryBusOptions;
  readonly #rules: InboxRules;
  readonly #inboxes = new Map<string, Inbox>();
  readonly #receipts = new Map<string, string>();
  readonly #dead: DeadLetter[] = [];
  readonly #events = createEventHub();
  readonly #closed = new AbortController();

  constructor(options: MemoryBusOptions) {
    this.#options = options;
    const { leaseMilliseconds = 600_000, deliveries = 5, waiting = 1_000 } = options;
    this.#rules = { leaseMilliseconds, deliveries, waiting };
  }

  client(name: string): Bus {
    return this.#user(name, (draft, op) => this.#send(name, draft, op));
  }

  agent(name: string): Bus {
    return this.#user(name, () => notAtWork(name));
  }

  within(agent: string, delivery: Delivery): Bus {
    return this.#user(agent, (draft, op) => {
      const held = this.#inbox(agent).held(delivery.lease);
      if (held === undefined) return notAtWork(agent);
      return this.#send(agent, draft, op, { root: held.root, depth: held.depth + 1, deadline: held.deadline });
    });
  }

  publish(event: BusEvent): void {
    this.#events.publish(event);
  }

  deadLetters(): readonly DeadLetter[] {
    return [...this.#dead];
  }

  close(): void {
    this.#closed.abort();
  }

  #user(name: string, send: (draft: Draft, op: Op) => Receipt): Bus {
    return {
      send: async (draft, op) => send(draft, op),
      next: (op) => this.#inbox(name).next(op),
      events: (types, op) => this.#events.subscribe(types, op),
    };
  }

  #send(from: string, draft: Draft, op: Op, chain?: Chain): Receipt {
    const key = `${from}\n${op.key}`;
    const before = this.#receipts.get(key);
    if (before !== undefined) return { id: before, duplicate: true };
    const { to, session, text } = draft;
    const id = this.#options.ids.next('msg');
    const { root, depth, deadline } = chain ?? this.#newChain(id);
    if (depth > MAXIMUM_DEPTH) {
      throw new TemperError(
        'TEMPER_MESSAGE_DEPTH',
        `a message from "${from}" to "${to}" would be ${depth} deep in its chain; ${MAXIMUM_DEPTH} is allowed`,
      );
    }
    const time = this.#options.clock.now().toISOString();
    this.#inbox(to).add({ to, session, text, id, from, root, depth, deadline, time });
    this.#receipts.set(key, id);
    if (this.#receipts.size > REMEMBERED_KEYS) this.#receipts.delete(this.#receipts.keys().next().value ?? '');
    return { id, duplicate: false };
  }

  #newChain(id: string): Chain {
    const { clock, chainMilliseconds = 3_600_000 } = this.#options;
    return { root: id, depth: 0, deadline: new Date(clock.now().getTime() + chainMilliseconds).toISOString() };
  }

  #inbox(agent: string): Inbox {
    const { clock, ids } = this.#options;
    const bury = (message: Envelope, code: ErrorCode): void => this.#bury(message, code);
    const inbox =
      this.#inboxes.get(agent) ??
      new Inbox({ agent, rules: this.#rules, clock, ids, bury, closed: this.#closed.signal });
    this.#inboxes.set(agent, inbox);
    return inbox;
  }

  #bury(message: Envelope, code: ErrorCode): void {
    this.#dead.push({ message, code });
    if (this.#dead.length > REMEMBERED_DEAD_LETTERS) this.#dead.shift();
    const { id, root, session, to } = message;
    const time = this.#options.clock.now().toISOString();
    this.#events.publish({ type: 'message.dead', agent: to, time, data: { id, root, session, code } });
  }
}

interface Chain {
  root: string;
  depth: number;
  deadline: string;
}

function notAtWork(agent: string): never {
  throw new TemperError(
    'TEMPER_POLICY_DENIED',
    `agent "${agent}" holds no delivery; it may send only while it works on a message`,
    {
      details: { rule: 'message.root' },
    },
  );
}
