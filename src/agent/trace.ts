import type { Clock } from '../lib/clock.ts';
import type { AgentEvent, EventSink } from '../tools/events.ts';

/** `time` is RFC 3339. */
export type TraceEntry = AgentEvent & { time: string };

export interface Trace {
  sink: EventSink;
  /** In order of happening; the oldest are gone when there were more than the limit. */
  entries(): TraceEntry[];
}

/**
 * Passes each event on and keeps it. Pieces of a message are passed on only: the whole message is an event too.
 * A sink that throws loses its event and nothing else.
 */
export function createTrace(clock: Clock, events: EventSink, limit = 1_000): Trace {
  const kept: TraceEntry[] = [];
  return {
    sink(event) {
      if (!(event.type === 'message' && event.delta)) {
        kept.push({ ...event, time: clock.now().toISOString() });
        if (kept.length > limit) kept.shift();
      }
      try {
        events(event);
      } catch (error) {
        kept.push({
          type: 'warning',
          code: 'TEMPER_INTERNAL',
          message: `an event sink threw: ${String(error)}`,
          time: clock.now().toISOString(),
        });
      }
    },
    entries: () => [...kept],
  };
}
