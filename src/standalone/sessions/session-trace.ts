import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import { type SessionScope, sessionPath } from '../../tools/session-path.ts';

/** Maximum number of stored events per message; further events are only counted. */
const MAX_EVENTS = 2_000;

export interface SessionTraceDeps {
  records: RecordStore;
  clock: Clock;
  agent: { name: string; namespace: string };
  /** Receives every event after it was recorded. */
  next: EventSink;
}

/** The log with the trace of a session. */
export function traceLog(session: SessionScope): string {
  return `${sessionPath(session)}/trace`;
}

/**
 * Stores the events of a session in the log `trace` of the session, one line per message: `{session, agent, namespace, events,
 * left}`. Message deltas are omitted, since the complete message is an event too. The line is written when the message is answered; a crash before that loses
 * the trace of this message, but no state.
 */
export class SessionTrace {
  readonly #records: RecordStore;
  readonly #clock: Clock;
  readonly #agent: SessionTraceDeps['agent'];
  readonly #next: EventSink;
  #events: JsonObject[] = [];
  #dropped = 0;
  #session: string | undefined;
  readonly #writes = new SerialQueue();

  constructor({ records, clock, agent, next }: SessionTraceDeps) {
    this.#records = records;
    this.#clock = clock;
    this.#agent = agent;
    this.#next = next;
  }

  readonly sink: EventSink = (event) => {
    this.#record(event);
    this.#next(event);
  };

  /** Resolves when all lines written so far are durable. */
  flush(): Promise<void> {
    return this.#writes.idle();
  }

  #record(event: AgentEvent): void {
    if (event.type === 'message' && event.delta) return;
    if (event.type === 'session-start') this.#session = event.session;
    const stamped = { time: this.#clock.now().toISOString(), ...event } as unknown as JsonObject;
    if (this.#events.length < MAX_EVENTS) this.#events.push(stamped);
    else this.#dropped += 1;
    if (event.type === 'session-end') this.#write();
  }

  #write(): void {
    const session = this.#session;
    if (session === undefined) return;
    const { name: agent, namespace } = this.#agent;
    const line = { session, agent, namespace, events: this.#events, left: this.#dropped };
    this.#events = [];
    this.#dropped = 0;
    this.#writes
      .run(() => this.#records.append(traceLog({ agent, namespace, session }), line))
      .catch((error: unknown) =>
        this.#next({
          type: 'warning',
          code: 'TEMPER_STATE_CORRUPT',
          message: `the trace was not stored: ${messageOf(error)}`,
        }),
      );
  }
}
