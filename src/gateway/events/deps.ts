import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import { createAcceptedEvents } from '../../nats/events/accepted-events.ts';
import { createEventHistory } from '../../nats/events/event-history.ts';
import { createSubscriptions } from '../../nats/events/subscriptions.ts';
import { createTriggerFires } from '../../nats/events/trigger-fires.ts';
import type { GatewayDeps } from '../deps.ts';
import { EventLimits } from './event-limits.ts';
import { NamespaceEvents, type NamespaceEventsDeps } from './namespace-events.ts';

type EventDeps = Pick<
  GatewayDeps,
  'namespaceEvents' | 'acceptedEvents' | 'eventHistory' | 'eventLimits' | 'subscriptions' | 'triggerFires'
>;

/** What routes and tasks need of events. */
export function eventDeps(
  bus: JetStreamConnection,
  shared: Omit<NamespaceEventsDeps, 'accepted' | 'history' | 'subscriptions' | 'fires'>,
): EventDeps {
  const acceptedEvents = createAcceptedEvents(bus);
  const eventHistory = createEventHistory(bus);
  const subscriptions = createSubscriptions(bus);
  const triggerFires = createTriggerFires(bus);
  const stores = { accepted: acceptedEvents, history: eventHistory, subscriptions, fires: triggerFires };
  const namespaceEvents = new NamespaceEvents({ ...shared, ...stores });
  return {
    namespaceEvents,
    acceptedEvents,
    eventHistory,
    eventLimits: new EventLimits(shared.clock),
    subscriptions,
    triggerFires,
  };
}
