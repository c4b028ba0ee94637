import type { PublishedEvent } from '../../events/event.ts';
import type { AcceptedEvent, AnnouncedEvent } from '../../nats/events/accepted-events.ts';

export interface NewEvent {
  readonly namespace: string;
  readonly ownerUid: string;
  readonly event: PublishedEvent;
  /** Only the triggers and subscriptions of this agent. */
  readonly to?: string | undefined;
  /** Only this trigger of the owner, whatever the subject is. */
  readonly trigger?: string;
  /** Not stored when nothing matches. */
  readonly onlyMatched?: true;
}

export interface EventDeliveries {
  /** Messages that the event caused. */
  readonly messages: number;
  /** Matching triggers and subscriptions that gave no message. */
  readonly refused: number;
  /** Of these, agents whose inbox had no space. */
  readonly full: number;
}

/** Publishes events in namespaces. */
export interface EventPublisherPort {
  /** Idempotent per id of the event. Throws TEMPER_EVENT_REFUSED when it would reach too many agents, and TEMPER_BUS_*. */
  publish(added: NewEvent): Promise<EventDeliveries>;
  /** Continues an event that another process accepted and did not finish, or that the operator announced. */
  resume(open: AcceptedEvent | AnnouncedEvent): Promise<void>;
}
