import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, type BucketName, token } from '../jetstream/names.ts';
import { parseJsonBytes, readMessages } from '../jetstream/stream-reader.ts';
import { parseSessionHead } from '../sessions/session-head.ts';
import type { CountedStore } from './resident.ts';

export const BUCKET_OF: Record<CountedStore, BucketName> = {
  sessions: BUCKETS.sessions,
  sessionTools: BUCKETS.sessionTools,
  memory: BUCKETS.memory,
};

/**
 * The bytes that an agent has in a bucket. Sums are always added up from what is stored and never kept as a counter: no lost or
 * repeated write can make them wrong, and what was deleted is gone from them. Sessions are counted by their heads, so their histories
 * are not read. Stops above `limit`: the result is then any number above it.
 */
export async function countBytes(
  connection: JetStreamConnection,
  store: CountedStore,
  agentUid: string,
  limit: number,
): Promise<number> {
  const bucket = BUCKET_OF[store];
  const filter = bucketSubject(bucket, `${token(agentUid)}.${store === 'sessions' ? '*.head' : '>'}`);
  let sum = 0;
  for await (const { data } of readMessages(connection, bucketStream(bucket), filter)) {
    sum += data.byteLength + (store === 'sessions' ? (parseSessionHead(parseJsonBytes(data))?.bytes ?? 0) : 0);
    if (sum > limit) break;
  }
  return sum;
}
