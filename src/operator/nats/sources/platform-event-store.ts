import { createAcceptedEvents } from '../../../nats/events/accepted-events.ts';
import { createObservedObjects } from '../../../nats/events/observed-objects.ts';
import type { PlatformEventStore } from '../../platform-events/ports.ts';
import type { NatsLink } from '../nats-link.ts';

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export function natsPlatformEvents(link: Pick<NatsLink, 'current'>): PlatformEventStore {
  const objects = () => createObservedObjects(link.current());
  return {
    read: async (uid) => objects().read(uid),
    write: async (record, revision) => objects().write(record, revision),
    remove: async (uid) => objects().remove(uid),
    all: async () => objects().all(),
    announce: async ({ uid, namespace }, event) =>
      createAcceptedEvents(link.current()).announce({ event, namespace, ownerUid: uid }),
  };
}
