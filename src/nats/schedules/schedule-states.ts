import type { Json } from '../../lib/json.ts';
import type { ScheduleState } from '../../schedule/advance.ts';
import { parseScheduleState, storedForm } from '../../schedule/stored-state.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { purge } from '../jetstream/stream-reader.ts';

export interface StoredSchedule {
  /** Undefined for a schedule without a valid document. */
  readonly state: ScheduleState | undefined;
  readonly revision: number;
}

/** The schedule of the spec of an agent, or with an id one that the agent made. */
export interface ScheduleId {
  readonly agentUid: string;
  readonly id?: string | undefined;
}

/** The state of each schedule. Methods throw TEMPER_BUS_*. */
export interface ScheduleStates {
  read(schedule: ScheduleId): Promise<StoredSchedule>;
  /** Returns the new revision; undefined when another writer changed the document. */
  write(schedule: ScheduleId, state: ScheduleState, revision: number): Promise<number | undefined>;
  /** Idempotent. */
  remove(schedule: ScheduleId): Promise<void>;
}

export function createScheduleStates(connection: JetStreamConnection): ScheduleStates {
  const documents = createDocumentStore(connection, BUCKETS.schedules);
  return {
    async read(schedule) {
      const found = await documents.get(keyOf(schedule));
      return { state: parseScheduleState(found?.value), revision: found?.revision ?? 0 };
    },
    write: (schedule, state, revision) => documents.write(keyOf(schedule), storedForm(state) as Json, revision),
    remove: (schedule) =>
      purge(connection, bucketStream(BUCKETS.schedules), bucketSubject(BUCKETS.schedules, keyOf(schedule))),
  };
}

function keyOf({ agentUid, id }: ScheduleId): string {
  return `${token(agentUid)}.${id === undefined ? 'state' : token(id)}`;
}
