import type { AgentEvent } from '../../tools/events.ts';
import type { AgentScope } from './member.ts';

/** The agent of an event and its session; work of the agent in the background has no session. */
export interface EventSource extends AgentScope {
  readonly session?: string;
}

/** Receives the events of all agents of a process. Must not throw. */
export type TeamEvents = (event: AgentEvent, source: EventSource) => void;
