import type { Json } from '../../lib/json.ts';
import type { ScheduleState } from '../../schedule/advance.ts';
import { parseScheduleState, storedForm } from '../../schedule/stored-state.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { purge } from '../jetstream/stream-reader.ts';

export interface StoredSchedule {
  /** Undefined for an agent without a valid document. */
  readonly state: ScheduleState | undefined;
  readonly revision: number;
}

/** The state of the schedule of each agent. Methods throw TEMPER_BUS_*. */
export interface ScheduleStates {
  read(agentUid: string): Promise<StoredSchedule>;
  /** Returns the new revision; undefined when another writer changed the document. */
  write(agentUid: string, state: ScheduleState, revision: number): Promise<number | undefined>;
  /** Idempotent. */
  remove(agentUid: string): Promise<void>;
}

export function createScheduleStates(connection: JetStreamConnection): ScheduleStates {
  const documents = createDocumentStore(connection, BUCKETS.schedules);
  return {
    async read(agentUid) {
      const found = await documents.get(keyOf(agentUid));
      return { state: parseScheduleState(found?.value), revision: found?.revision ?? 0 };
    },
    write: (agentUid, state, revision) => documents.write(keyOf(agentUid), storedForm(state) as Json, revision),
    remove: (agentUid) =>
      purge(connection, bucketStream(BUCKETS.schedules), bucketSubject(BUCKETS.schedules, keyOf(agentUid))),
  };
}

function keyOf(agentUid: string): string {
  return `${token(agentUid)}.state`;
}
