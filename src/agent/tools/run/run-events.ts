import type { RunContext } from '../../../tools/contract.ts';
import type { AgentEvent, EventSink } from '../../../tools/events.ts';
import { runIds } from '../../../tools/nested/nested-calls.ts';

/** Events of a message that a run does not have, or that its own events replace. */
const REPLACED: ReadonlySet<AgentEvent['type']> = new Set([
  'message-received',
  'reasoning',
  'turn-parked',
  'model-routed',
]);

/** Reports the events of a run among those of its message, with the ids of the run. */
export function runEvents(events: EventSink, run: RunContext): EventSink {
  const ids = runIds({ run });
  return (event) => {
    if (REPLACED.has(event.type)) return;
    if (event.type === 'tool-call' || event.type === 'tool-result') {
      // The ids of models are unique in one conversation only.
      events({ ...event, id: `${run.id}/${event.id}`, depth: event.depth ?? run.ancestors.length, ...ids });
    } else if (event.type === 'error') {
      const { code, message, attempt } = event;
      events({ type: 'agent-error', code, message, attempt, ...ids });
    } else if (event.type !== 'message') events({ ...event, ...ids });
    else if (!event.delta) events({ type: 'agent-message', text: event.text, ...ids });
  };
}
