import type { ListedEvent } from '../../events/past-event.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { readInboxes } from '../messages/message-log.ts';

/** The latest events of a state folder, oldest first. Throws TEMPER_STATE_CORRUPT. */
export async function pastEvents(records: RecordStore): Promise<ListedEvent[]> {
  const inboxes = await readInboxes(records);
  const events = [...inboxes.values()].flatMap(({ events: { published } }) => [...published.values()]);
  return events.sort((a, b) => (a.time < b.time ? -1 : 1));
}
