import type { Clock } from '../../lib/clock.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';

/** `time` is RFC 3339. */
export type TraceEntry = AgentEvent & { time: string };

export interface Trace {
  sink: EventSink;
  /** In chronological order; above the limit the oldest entries are dropped. */
  entries(): TraceEntry[];
}

/**
 * Forwards each event and stores it. Message deltas are only forwarded, because the complete message is an event too.
 * An exception of a sink affects only that event.
 */
export function createTrace(clock: Clock, events: EventSink, limit = 1_000): Trace {
  const stored: TraceEntry[] = [];
  return {
    sink(event) {
      if (!(event.type === 'message' && event.delta)) {
        stored.push({ ...event, time: clock.now().toISOString() });
        if (stored.length > limit) stored.shift();
      }
      try {
        events(event);
      } catch (error) {
        stored.push({
          type: 'warning',
          code: 'TEMPER_INTERNAL',
          message: `an event sink threw: ${String(error)}`,
          time: clock.now().toISOString(),
        });
      }
    },
    entries: () => [...stored],
  };
}
