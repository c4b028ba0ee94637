import type { TokenUsage } from '../../models/port.ts';
import type { EventSink } from '../../tools/events.ts';
import type { HistoryWriter } from '../session/history-writer.ts';

/** What a run of `agent_run` shares with the message that it belongs to. */
export interface MessageInWork {
  readonly historyWriter: HistoryWriter;
  readonly events: EventSink;
  /** What the message used. A run adds what it used itself. */
  readonly usage: TokenUsage;
  /** Runs that the message has started. */
  runs: number;
}

/** The messages that an agent works on, one per session. */
export class MessagesInWork {
  readonly #messages = new Map<string, MessageInWork>();

  find(session: string): MessageInWork | undefined {
    return this.#messages.get(session);
  }

  async during<T>(session: string, message: Omit<MessageInWork, 'runs'>, work: () => Promise<T>): Promise<T> {
    this.#messages.set(session, { ...message, runs: 0 });
    try {
      return await work();
    } finally {
      this.#messages.delete(session);
    }
  }
}
