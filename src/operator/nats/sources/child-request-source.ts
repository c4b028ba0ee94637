import { createChildRequests } from '../../../nats/children/child-requests.ts';
import { subjects } from '../../../nats/jetstream/names.ts';
import type { ChildRequestSource } from '../../children/child-requests.ts';
import type { NatsLink } from '../nats-link.ts';
import { notifications } from './notifications.ts';

/** A notification may be lost, and an agent waits for its child. */
const LOOK_INTERVAL_MS = 3_000;

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export function natsChildRequests(link: Pick<NatsLink, 'current' | 'waitForConnection'>): ChildRequestSource {
  const store = () => createChildRequests(link.current());
  return {
    arrivals: (signal) =>
      notifications(link, { subject: subjects.notifyChildRequests(), intervalMs: LOOK_INTERVAL_MS }, signal),
    revision: () => store().revision(),
    open: (after) => store().open(after),
    end: (request, end) => store().end(request, end),
  };
}
