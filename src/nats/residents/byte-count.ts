import type { JetStreamConnection } from '../connection/connection.ts';
import { type BucketName, BUCKETS, bucketStream, bucketSubject, STREAMS, subjects, token } from '../jetstream/names.ts';
import { parseJsonBytes } from '../../lib/json.ts';
import { readMessages } from '../jetstream/stream-reader.ts';
import { parseSessionHead } from '../sessions/session-head.ts';
import type { CountedStore } from './resident.ts';

interface Location {
  stream: string;
  subjectsOf: (agentUid: string) => readonly string[];
}

/** Where a store of an agent is. Sessions are counted by their heads. */
const LOCATIONS: Record<CountedStore, Location> = {
  sessions: {
    stream: bucketStream(BUCKETS.sessions),
    subjectsOf: (agentUid) => [bucketSubject(BUCKETS.sessions, `${token(agentUid)}.*.head`)],
  },
  sessionTools: everyKey(BUCKETS.sessionTools),
  sources: everyKey(BUCKETS.sources),
  memory: everyKey(BUCKETS.memory),
  tasks: everyKey(BUCKETS.tasks),
  evidence: everyKey(BUCKETS.evidence),
  inbox: { stream: STREAMS.inbox, subjectsOf: (agentUid) => [subjects.inbox(agentUid)] },
  requests: {
    stream: bucketStream(BUCKETS.pendingCalls),
    subjectsOf: (agentUid) => [
      bucketSubject(BUCKETS.pendingCalls, token(agentUid)),
      bucketSubject(BUCKETS.childRequests, `${token(agentUid)}.>`),
      bucketSubject(BUCKETS.promotionStates, `${token(agentUid)}.>`),
    ],
  },
};

function everyKey(bucket: BucketName): Location {
  return {
    stream: bucketStream(bucket),
    subjectsOf: (agentUid) => [bucketSubject(bucket, `${token(agentUid)}.>`)],
  };
}
/** The stream behind a store. */
export function streamOf(store: CountedStore): string {
  return LOCATIONS[store].stream;
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
  const { stream, subjectsOf } = LOCATIONS[store];
  let sum = 0;
  for (const subject of subjectsOf(agentUid)) {
    for await (const { data } of readMessages(connection, stream, subject)) {
      sum += data.byteLength + (store === 'sessions' ? (parseSessionHead(parseJsonBytes(data))?.bytes ?? 0) : 0);
      if (sum > limit) return sum;
    }
  }
  return sum;
}
