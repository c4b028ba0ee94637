import {
  type Ask,
  type AskEnd,
  endOfAsk,
  expiredTask,
  laterDeadline,
  replyText,
  taskOf,
} from '../../agent/messages/ask.ts';
import type { Envelope, Task } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { LocalInboxes } from './local-inbox.ts';
import { type Inboxes, inboxOf, type MessageEntry } from './message-entries.ts';

/** The message in work that a call belongs to. */
export interface DeliveredMessage {
  readonly message: Envelope;
  readonly signal: AbortSignal;
}

/**
 * Brings answers back to the agents that asked, by the rules of clusters: the answer is a message to the session that asked, and the record
 * of the question says which message of the session took it. The end of the asked message, the answer and the record are one change.
 */
export class LocalAsks {
  readonly #inboxes: LocalInboxes;
  readonly #clock: Clock;

  constructor(inboxes: LocalInboxes, clock: Clock) {
    this.#inboxes = inboxes;
    this.#clock = clock;
  }

  /** The changes that bring the end of a message to the agent that asked; none for a message that asked nothing. */
  ending(inboxes: Inboxes, message: Envelope, end: AskEnd): MessageEntry[] {
    const { asker, id: ticket } = message;
    const ask = asker === undefined ? undefined : inboxes.get(asker)?.asks.get(ticket);
    // The asking agent is gone, or its record is too old.
    if (asker === undefined || ask === undefined || ask.state !== 'Pending') return [];
    const recorded = (end: Partial<Ask>): MessageEntry => ({
      op: 'asked',
      agent: asker,
      ticket,
      ask: { ...ask, ...end },
    });
    try {
      const reply = this.#inboxes.storing(inboxes, asker, replyId(ticket), this.#reply(message, ask, end));
      return [...reply, recorded(endOfAsk(end))];
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_BUS_FULL')) throw error;
      const reason = 'your inbox is full; the answer was not delivered';
      return [recorded({ state: 'Failed', code: 'TEMPER_BUS_FULL', reason })];
    }
  }

  /** Takes the answer for its own message. False when the session has it already; other messages are always delivered. */
  async mayHandle(agent: string, { source, answers, id }: Envelope): Promise<boolean> {
    if (source !== 'Reply' || answers === undefined) return true;
    const stored = await this.#take(agent, answers, id);
    return stored === undefined || stored.takenBy === id;
  }

  /** The state of a task of the session of this message, at the latest after the time. Throws TEMPER_NOT_FOUND. */
  async task(agent: string, { message, signal }: DeliveredMessage, ticket: string, waitMs: number): Promise<Task> {
    const found = await this.#wait(agent, ticket, waitMs, signal);
    if (found === undefined || found.session !== message.session)
      throw new TemperError('TEMPER_NOT_FOUND', `session "${message.session}" has no ticket "${ticket}"`);
    if (found.state === 'Pending') return this.#isOver(found) ? expiredTask(ticket, found) : taskOf(ticket, found);
    const ask = (await this.#take(agent, ticket, message.id)) ?? found;
    const text = ask.takenBy === message.id ? this.#answerOf(agent, ticket) : undefined;
    return taskOf(ticket, ask, text);
  }

  #reply(message: Envelope, { session, root, depth, ancestors, deadline }: Ask, end: AskEnd) {
    return {
      to: message.from,
      from: message.to,
      session,
      text: replyText(end),
      root,
      depth,
      deadline: laterDeadline(message.deadline, deadline),
      time: this.#clock.now().toISOString(),
      source: 'Reply' as const,
      ...(end.tainted ? { tainted: true } : {}),
      answers: message.id,
      ancestors,
    };
  }

  async #wait(agent: string, ticket: string, waitMs: number, signal: AbortSignal): Promise<Ask | undefined> {
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    const timer = setTimeout(() => over.abort(), waitMs);
    try {
      for (;;) {
        const ask = inboxOf(this.#inboxes.inboxes, agent).asks.get(ticket);
        if (ask === undefined || ask.state !== 'Pending' || this.#isOver(ask) || ended.aborted) return ask;
        await this.#inboxes.changes.wait(ended);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** The first one that takes it has it. */
  #take(agent: string, ticket: string, message: string): Promise<Ask | undefined> {
    return this.#inboxes.change((inboxes) => {
      const ask = inboxOf(inboxes, agent).asks.get(ticket);
      if (ask === undefined || ask.takenBy !== undefined) return { entries: [], result: ask };
      const taken = { ...ask, takenBy: message };
      return { entries: [{ op: 'asked', agent, ticket, ask: taken }], result: taken };
    });
  }

  /** The answer is in the inbox of the agent until the message that took it has ended, so a repeated call gets it again. */
  #answerOf(agent: string, ticket: string): string | undefined {
    return inboxOf(this.#inboxes.inboxes, agent).messages.get(replyId(ticket))?.message.text;
  }

  #isOver({ deadline }: Ask): boolean {
    return Date.parse(deadline) <= this.#clock.now().getTime();
  }
}

function replyId(ticket: string): string {
  return `reply-${ticket}`;
}
