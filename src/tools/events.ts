import type { AgentEvent } from './event-schema/agent-event.ts';

/** The gates of a forge, in order. */
export const GATES = [
  'normalization',
  'shape',
  'static',
  'schemas',
  'build',
  'tests',
  'output-schema',
  'resources',
  'policy',
  'judge',
  'registration',
] as const;
export type Gate = (typeof GATES)[number];

export type { AgentEvent, GateResult, StampedEvent } from './event-schema/agent-event.ts';

/** Receives an event. Must not throw, so that reporting never disturbs the work. */
export type EventSink = (event: AgentEvent) => void;
