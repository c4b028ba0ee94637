import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, subjects, token } from '../jetstream/names.ts';
import { parseJsonBytes } from '../../lib/json.ts';
import { readMessages } from '../jetstream/stream-reader.ts';
import { parseSessionHead } from '../sessions/session-head.ts';
import type { CountedStore } from './resident.ts';

/** Where a store of an agent is. Sessions are counted by their heads. */
const PLACES: Record<CountedStore, { stream: string; subjectsOf: (agentUid: string) => string }> = {
  sessions: {
    stream: bucketStream(BUCKETS.sessions),
    subjectsOf: (agentUid) => bucketSubject(BUCKETS.sessions, `${token(agentUid)}.*.head`),
  },
  sessionTools: {
    stream: bucketStream(BUCKETS.sessionTools),
    subjectsOf: (agentUid) => bucketSubject(BUCKETS.sessionTools, `${token(agentUid)}.>`),
  },
  sources: {
    stream: bucketStream(BUCKETS.sources),
    subjectsOf: (agentUid) => bucketSubject(BUCKETS.sources, `${token(agentUid)}.>`),
  },
  memory: {
    stream: bucketStream(BUCKETS.memory),
    subjectsOf: (agentUid) => bucketSubject(BUCKETS.memory, `${token(agentUid)}.>`),
  },
  tasks: {
    stream: bucketStream(BUCKETS.tasks),
    subjectsOf: (agentUid) => bucketSubject(BUCKETS.tasks, `${token(agentUid)}.>`),
  },
  evidence: {
    stream: bucketStream(BUCKETS.evidence),
    subjectsOf: (agentUid) => bucketSubject(BUCKETS.evidence, `${token(agentUid)}.>`),
  },
  inbox: { stream: STREAMS.inbox, subjectsOf: subjects.inbox },
};

/** The stream behind a store. */
export function streamOf(store: CountedStore): string {
  return PLACES[store].stream;
}

/**
 * The bytes that an agent has in a store. Sums are always added up from what is stored and never kept as a counter: no lost or
 * repeated write can make them wrong, and what was deleted is gone from them. Sessions are counted by their heads, so their histories
 * are not read. Stops above `limit`: the result is then any number above it.
 */
export async function countBytes(
  connection: JetStreamConnection,
  store: CountedStore,
  agentUid: string,
  limit: number,
): Promise<number> {
  const { stream, subjectsOf } = PLACES[store];
  let sum = 0;
  for await (const { data } of readMessages(connection, stream, subjectsOf(agentUid))) {
    sum += data.byteLength + (store === 'sessions' ? (parseSessionHead(parseJsonBytes(data))?.bytes ?? 0) : 0);
    if (sum > limit) break;
  }
  return sum;
}
