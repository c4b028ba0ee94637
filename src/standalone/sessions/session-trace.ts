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
 * Stores the events of the sessions of an agent in the log `trace` of each session, one line per message: `{session, agent, namespace,
 * events, left}`. Message deltas are omitted, since the complete message is an event too. The line is written when the message is answered;
 * a crash before that loses the trace of this message, but no state. What happens in the background is in the line that is written next.
 */
export class SessionTrace {
  readonly #deps: SessionTraceDeps;
  readonly #lines = new Map<string, TraceLine>();
  #background: TraceLine = emptyLine();
  #count = 0;
  readonly #writes = new SerialQueue();

  constructor(deps: SessionTraceDeps) {
    this.#deps = deps;
  }

  readonly sink: EventSink = (event, session) => {
    this.#record(event, session);
    this.#deps.next(event, session);
  };

  /** Resolves when all lines written so far are durable. */
  flush(): Promise<void> {
    return this.#writes.idle();
  }

  #record(event: AgentEvent, session: string | undefined): void {
    if (event.type === 'message' && event.delta) return;
    const line = session === undefined ? this.#background : (this.#lines.get(session) ?? emptyLine());
    if (session !== undefined) this.#lines.set(session, line);
    const stamped = { time: this.#deps.clock.now().toISOString(), ...event } as unknown as JsonObject;
    this.#count += 1;
    if (line.events.length < MAX_EVENTS) line.events.push([this.#count, stamped]);
    else line.left += 1;
    if (event.type === 'session-end' && session !== undefined) this.#write(session, line);
  }

  #write(session: string, own: TraceLine): void {
    const { records, agent: scope, next: report } = this.#deps;
    const { name: agent, namespace } = scope;
    const background = this.#background;
    this.#background = emptyLine();
    this.#lines.delete(session);
    const events = [...background.events, ...own.events].sort(([a], [b]) => a - b).map(([, event]) => event);
    const line = { session, agent, namespace, events, left: background.left + own.left };
    this.#writes
      .run(() => records.append(traceLog({ agent, namespace, session }), line))
      .catch((error: unknown) => {
        const message = `the trace was not stored: ${messageOf(error)}`;
        report({ type: 'warning', code: 'TEMPER_STATE_CORRUPT', message }, session);
      });
  }
}

interface TraceLine {
  /** With their order among all events of the agent. */
  readonly events: [number, JsonObject][];
  /** Events beyond the maximum. */
  left: number;
}

function emptyLine(): TraceLine {
  return { events: [], left: 0 };
}
