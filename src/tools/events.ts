import type { AgentEvent } from './event-schema/agent-event.ts';

export { type Gate, GATES } from './event-schema/gates.ts';
export type { AgentEvent, GateResult, StampedEvent } from './event-schema/agent-event.ts';

/** Receives an event. Must not throw, so that reporting never disturbs the work. */
export type EventSink = (event: AgentEvent) => void;
