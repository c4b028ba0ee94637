import { DeliveryEnd, deliveryLost } from '../../bus/delivery-end.ts';
import type { Delivery, Envelope, MessageReceiver, Receipt } from '../../bus/port.ts';
import { Notifier } from '../../lib/async/notifier.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import { sha256 } from '../../lib/canonical.ts';
import { type Clock, MAX_TIMER_MS } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ScheduledRunOutcome } from '../../schedule/advance.ts';
import { AgentChanges } from './agent-changes.ts';
import { bytesOf, type Inboxes, inboxOf, type MessageEntry, type QueuedMessage } from './message-entries.ts';
import type { MessageLog } from './message-log.ts';

const MAX_MESSAGES = 1_000;
const MAX_BYTES = 8 * 1_024 * 1_024;
/** Crashes of the process count too. */
const MAX_DELIVERIES = 10;

/** A message without what the inbox adds; without `root` it starts a chain. */
export type LocalMessage = Omit<Envelope, 'id' | 'root'> & { root?: string };

export interface LocalDelivery extends Delivery {
  /** Milliseconds for which the message waited for decisions. */
  readonly parkedMs: number;
  /** Ends the delivery together with these changes: all are stored, or none. The outcome is for the run of a schedule. */
  endWith(outcome: ScheduledRunOutcome, entries: (inboxes: Inboxes) => readonly MessageEntry[]): Promise<void>;
  /** `excused`: the cause is outside the agent, so it is no failure of a run. */
  retry(delayMs: number, excused?: boolean): Promise<void>;
  /** The message waits for the decisions about these requests. */
  park(requests: readonly string[]): Promise<void>;
}

export interface LocalReceiver extends MessageReceiver {
  next(op: CallOptions): Promise<LocalDelivery>;
}

export interface LocalInboxesDeps {
  log: MessageLog;
  clock: Clock;
  /** Whether the message may be delivered now: its agent is not suspended, and a user waits for an own message. */
  mayDeliver?: (agent: string, message: Envelope) => boolean;
  /** Acknowledgement timeouts of consecutive deliveries; absent: a delivery ends with this process. */
  ackWaitsMs?: readonly number[];
  /** A message that no delivery ends: it was delivered too often, or its deadline has passed. The changes end its question. */
  onUndelivered?: (inboxes: Inboxes, agent: string, message: Envelope, error: TemperError) => readonly MessageEntry[];
}

/** A delivery that has not ended. */
interface Open {
  readonly token: string;
  readonly until: number;
}

/** The inboxes of the agents of this process. Deliveries live in memory: a message whose delivery did not end before a crash is delivered again. */
export class LocalInboxes {
  /** Any change of any agent. */
  readonly changes = new Notifier();
  readonly #deps: LocalInboxesDeps;
  /** By agent and id of the message. */
  readonly #open = new Map<string, Open>();
  #tokens = 0;
  readonly #agents = new AgentChanges();
  #version = 0;

  constructor(deps: LocalInboxesDeps) {
    this.#deps = deps;
  }

  /** Changes with every change of a message. */
  get version(): number {
    return this.#version;
  }

  get inboxes(): Inboxes {
    return this.#deps.log.inboxes;
  }

  /** The id of a message, derived from its sender and the key of the call: a repeated call gets the same id. */
  static idOf(sender: string, receiver: string, key: string): string {
    return `msg-${sha256(`${sender}\n${receiver}\n${key}`).slice('sha256:'.length, 'sha256:'.length + 32)}`;
  }

  /** Stores a message with this id once. Throws TEMPER_BUS_FULL. */
  async publish(agent: string, id: string, message: LocalMessage): Promise<Receipt> {
    return this.change((inboxes) => {
      const entries = this.storing(inboxes, agent, id, message);
      return { entries, result: { id, duplicate: entries.length === 0 } };
    });
  }

  /**
   * The entry that stores a message; none when the agent has it, or had it. `beside`: the entries before it in the same change. Throws
   * TEMPER_BUS_FULL.
   */
  storing(
    inboxes: Inboxes,
    agent: string,
    id: string,
    message: LocalMessage,
    beside: readonly MessageEntry[] = [],
  ): MessageEntry[] {
    const inbox = inboxOf(inboxes, agent);
    if (inbox.messages.has(id) || inbox.ended.has(id)) return [];
    const stored: Envelope = { ...message, id, root: message.root ?? id };
    const added = beside.flatMap((entry) => (entry.op === 'stored' && entry.agent === agent ? [entry.message] : []));
    const bytes = [...added, stored].reduce((sum, one) => sum + bytesOf(one), inbox.bytes);
    if (inbox.messages.size + added.length >= MAX_MESSAGES || bytes > MAX_BYTES) {
      throw new TemperError(
        'TEMPER_BUS_FULL',
        `the inbox of agent "${message.to}" is full (${MAX_MESSAGES} messages, ${MAX_BYTES / 1_024 ** 2} MiB); wait until it has worked on some`,
      );
    }
    return [{ op: 'stored', agent, sequence: this.#deps.log.nextSequence(), message: stored }];
  }

  /** Stores the entries that the plan derives from the present messages, and wakes who waits for them. */
  async change<T>(
    plan: (inboxes: Inboxes) => { entries: readonly MessageEntry[]; result: T },
    durability: 'synced' | 'written' = 'synced',
  ): Promise<T> {
    let changed: ReadonlySet<string> = new Set();
    const result = await this.#deps.log.change(
      (inboxes) => {
        const planned = plan(inboxes);
        changed = new Set(planned.entries.map(({ agent }) => agent));
        return planned;
      },
      { now: this.#now(), durability },
    );
    if (changed.size > 0) this.#wakeAgents(changed);
    return result;
  }

  /** Looks again for deliverable messages: something else that decides about them has changed. */
  wake(): void {
    this.#version += 1;
    this.#agents.wakeAll();
    this.changes.notifyAll();
  }

  #wakeAgents(agents: ReadonlySet<string>): void {
    this.#version += 1;
    for (const agent of agents) this.#agents.wake(agent);
    this.changes.notifyAll();
  }

  receiver(agent: string): LocalReceiver {
    return { next: (op) => this.#next(agent, op) };
  }

  /** Whether a message is in work or will be delivered without a decision. */
  hasWork(agent: string): boolean {
    const { messages } = inboxOf(this.inboxes, agent);
    if ([...messages.keys()].some((id) => this.#openOf(agent, id) !== undefined)) return true;
    return heads(messages).some((queued) => queued.parked === undefined && this.#may(agent, queued));
  }

  /** The messages that wait for decisions. */
  parked(agent: string): QueuedMessage[] {
    return [...inboxOf(this.inboxes, agent).messages.values()].filter(({ parked }) => parked !== undefined);
  }

  /** Delivers the parked messages that `isDecided` accepts again. */
  async resume(agent: string, isDecided: (queued: QueuedMessage) => boolean): Promise<void> {
    const time = this.#now();
    await this.change((inboxes) => {
      const due = [...inboxOf(inboxes, agent).messages.values()].filter(
        (queued) => queued.parked !== undefined && isDecided(queued),
      );
      return { entries: due.map(({ message }) => ({ op: 'resumed', agent, id: message.id, time })), result: undefined };
    });
  }

  async #next(agent: string, op: CallOptions): Promise<LocalDelivery> {
    const { clock } = this.#deps;
    for (;;) {
      if (op.signal.aborted) throw new TemperError('TEMPER_CANCELLED', 'the wait for a message was cancelled');
      const version = this.#agents.version(agent);
      const taken = await this.#take(agent);
      if (taken !== undefined) return taken;
      if (this.#agents.version(agent) !== version) continue;
      const leftMs = remainingMs(op, clock);
      if (leftMs <= 0) throw new TemperError('TEMPER_TIMEOUT', 'no message arrived in time');
      await this.#changed(agent, Math.min(leftMs, this.#dueMs(agent), MAX_TIMER_MS), op.signal);
    }
  }

  async #changed(agent: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const ended = AbortSignal.any([signal, woken.signal]);
    const timer = setTimeout(() => woken.abort(), Math.max(1, milliseconds));
    await this.#agents.wait(agent, ended);
    clearTimeout(timer);
  }

  /** Milliseconds until a delayed message or an acknowledgement timeout is due. */
  #dueMs(agent: string): number {
    const now = this.#now();
    const times = [...inboxOf(this.inboxes, agent).messages.values()].flatMap(({ message, notBefore }) => [
      ...(notBefore > now ? [notBefore] : []),
      ...(this.#openOf(agent, message.id)?.until === undefined ? [] : [this.#openOf(agent, message.id)?.until ?? 0]),
    ]);
    return Math.max(1, Math.min(...times, Number.POSITIVE_INFINITY) - now);
  }

  /** Begins the delivery of the oldest message that can be delivered. */
  #take(agent: string): Promise<LocalDelivery | undefined> {
    return this.change<LocalDelivery | undefined>((inboxes) => {
      const found = this.#deliverable(inboxes, agent);
      if (found === undefined) return { entries: [], result: undefined };
      const { message, deliveries } = found;
      const undelivered = this.#undeliverable(found);
      if (undelivered !== undefined) {
        const outcome = undeliveredOutcome(found);
        const ended: MessageEntry = { op: 'ended', agent, id: message.id, time: this.#now(), outcome };
        const others = this.#deps.onUndelivered?.(inboxes, agent, message, undelivered) ?? [];
        return { entries: [ended, ...others], result: undefined };
      }
      this.#tokens += 1;
      const token = String(this.#tokens);
      const waits = this.#deps.ackWaitsMs ?? [];
      const waitMs = waits[Math.min(deliveries, waits.length - 1)] ?? Number.POSITIVE_INFINITY;
      this.#open.set(keyOf(agent, message.id), { token, until: this.#now() + waitMs });
      const entry: MessageEntry = { op: 'attempted', agent, id: message.id, deliveries: deliveries + 1 };
      return { entries: [entry], result: this.#delivery(agent, found, token) };
    }, 'written');
  }

  #deliverable(inboxes: Inboxes, agent: string): QueuedMessage | undefined {
    const now = this.#now();
    return heads(inboxOf(inboxes, agent).messages).find(
      (queued) =>
        queued.parked === undefined &&
        queued.notBefore <= now &&
        this.#openOf(agent, queued.message.id) === undefined &&
        this.#may(agent, queued),
    );
  }

  /** A delivery whose acknowledgement timeout has passed is none any more. */
  #openOf(agent: string, id: string): Open | undefined {
    const open = this.#open.get(keyOf(agent, id));
    return open !== undefined && open.until > this.#now() ? open : undefined;
  }

  #may(agent: string, { message }: QueuedMessage): boolean {
    return this.#deps.mayDeliver?.(agent, message) !== false;
  }

  #undeliverable({ message, deliveries, parkedMs }: QueuedMessage): TemperError | undefined {
    if (Date.parse(message.deadline) + parkedMs <= this.#now())
      return new TemperError('TEMPER_TIMEOUT', `the deadline of its chain, ${message.deadline}, has passed`);
    if (deliveries < MAX_DELIVERIES) return undefined;
    return new TemperError('TEMPER_MESSAGE_UNDELIVERED', `its processing did not end in ${MAX_DELIVERIES} attempts`);
  }

  #delivery(agent: string, { message, parkedMs }: QueuedMessage, token: string): LocalDelivery {
    const { id } = message;
    const own = new DeliveryEnd();
    const close = (plan: (inboxes: Inboxes) => readonly MessageEntry[]): Promise<void> =>
      own.end(async () => {
        await this.change((inboxes) => {
          if (this.#open.get(keyOf(agent, id))?.token !== token) throw deliveryLost();
          return { entries: plan(inboxes), result: undefined };
        });
        this.#open.delete(keyOf(agent, id));
        this.#wakeAgents(new Set([agent]));
      });
    const ended = (outcome: ScheduledRunOutcome): MessageEntry => ({
      op: 'ended',
      agent,
      id,
      time: this.#now(),
      outcome,
    });
    return {
      message,
      token,
      parkedMs,
      ack: () => close(() => [ended('excused')]),
      endWith: (outcome, entries) => close((inboxes) => [ended(outcome), ...entries(inboxes)]),
      retry: (delayMs, excused = false) =>
        close(() => [{ op: 'delayed', agent, id, until: this.#now() + Math.max(0, delayMs), excused }]),
      reject: (code) => {
        const error = new TemperError(code, 'the message cannot be processed');
        return close((inboxes) => [
          ended('failed'),
          ...(this.#deps.onUndelivered?.(inboxes, agent, message, error) ?? []),
        ]);
      },
      park: (requests) => close(() => [{ op: 'parked', agent, id, requests, time: this.#now() }]),
    };
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }
}

/** The first message of each session. */
function heads(messages: ReadonlyMap<string, QueuedMessage>): QueuedMessage[] {
  const sessions = new Map<string, QueuedMessage>();
  for (const queued of messages.values())
    if (!sessions.has(queued.message.session)) sessions.set(queued.message.session, queued);
  return [...sessions.values()];
}

/** A run that no process delivered is no failure of the agent. */
function undeliveredOutcome({ deliveries, excused = false }: QueuedMessage): ScheduledRunOutcome {
  return excused || deliveries === 0 ? 'excused' : 'failed';
}

function keyOf(agent: string, id: string): string {
  return `${agent} ${id}`;
}
