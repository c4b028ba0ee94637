import type { AgentEvent } from './event-schema/agent-event.ts';

export { type Gate, GATES } from './event-schema/gates.ts';
export type { AgentEvent, GateResult, StampedEvent } from './event-schema/agent-event.ts';

/**
 * Receives an event, and the session whose work it belongs to; work in the background has none. Must not throw, so that reporting never
 * disturbs the work.
 */
export type EventSink = (event: AgentEvent, session?: string) => void;

/** The sink of the work of one session. */
export function inSession(events: EventSink, session: string): EventSink {
  return (event) => events(event, session);
}
