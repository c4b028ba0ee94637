import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import type { AgentEvent, EventSink } from '../tools/events.ts';

/** Events kept of one message; what exceeds them is counted. */
const KEPT_EVENTS = 2_000;

/**
 * Keeps what happened as `sessions/<id>/trace.jsonl`, one line a message: `{session, events, left}`. Pieces of a message are left
 * out, since the whole message is an event too. The line is written when the message is answered; a crash before that loses
 * the trace of this message, never state.
 */
export class SessionTrace {
  readonly #records: RecordStore;
  readonly #clock: Clock;
  readonly #next: EventSink;
  #events: JsonObject[] = [];
  #left = 0;
  #session: string | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(records: RecordStore, clock: Clock, next: EventSink) {
    this.#records = records;
    this.#clock = clock;
    this.#next = next;
  }

  readonly sink: EventSink = (event) => {
    this.#keep(event);
    this.#next(event);
  };

  /** Resolves when everything kept so far is durable. */
  flush(): Promise<void> {
    return this.#writing;
  }

  #keep(event: AgentEvent): void {
    if (event.type === 'message' && event.delta) return;
    if (event.type === 'session-start') this.#session = event.session;
    const stamped = { time: this.#clock.now().toISOString(), ...event } as unknown as JsonObject;
    if (this.#events.length < KEPT_EVENTS) this.#events.push(stamped);
    else this.#left += 1;
    if (event.type === 'session-end') this.#write();
  }

  #write(): void {
    const session = this.#session;
    if (session === undefined) return;
    const line = { session, events: this.#events, left: this.#left };
    this.#events = [];
    this.#left = 0;
    this.#writing = this.#writing
      .then(() => this.#records.append(`sessions/${session}/trace`, line))
      .catch((error: unknown) =>
        this.#next({
          type: 'warning',
          code: 'TEMPER_STATE_CORRUPT',
          message: `the trace was not kept: ${messageOf(error)}`,
        }),
      );
  }
}
