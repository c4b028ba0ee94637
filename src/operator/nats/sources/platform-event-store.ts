import { createAcceptedEvents } from '../../../nats/events/accepted-events.ts';
import type { JetStreamConnection } from '../../../nats/connection/connection.ts';
import { createObservedObjects } from '../../../nats/events/observed-objects.ts';
import { createSubscriptions, type SubscriptionStore } from '../../../nats/events/subscriptions.ts';
import type { PlatformEventStore } from '../../platform-events/ports.ts';
import type { NatsLink } from '../nats-link.ts';

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export function natsPlatformEvents(link: Pick<NatsLink, 'current'>): PlatformEventStore {
  const objects = () => createObservedObjects(link.current());
  // It remembers the subscriptions of namespaces while they do not change.
  let known: { connection: JetStreamConnection; subscriptions: SubscriptionStore } | undefined;
  const subscriptions = (): SubscriptionStore => {
    const connection = link.current();
    if (known?.connection !== connection) known = { connection, subscriptions: createSubscriptions(connection) };
    return known.subscriptions;
  };
  return {
    read: async (uid) => objects().read(uid),
    write: async (record, revision) => objects().write(record, revision),
    remove: async (uid) => objects().remove(uid),
    all: async () => objects().all(),
    subscribed: async (namespace) => (await subscriptions().of(namespace)).map(({ subject }) => subject),
    announce: async ({ uid, namespace }, event) =>
      createAcceptedEvents(link.current()).announce({ event, namespace, ownerUid: uid }),
  };
}
