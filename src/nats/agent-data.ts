import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, token } from './jetstream/names.ts';
import { purge } from './jetstream/stream-reader.ts';

/** Streams in which the agent's UID is the first token after the prefix. Audit, activity, reports and ledger are not listed: they outlive the agent. */
const AGENT_SUBJECTS: readonly { stream: string; prefix: string }[] = [
  { stream: STREAMS.inbox, prefix: 'temper.inbox.' },
  { stream: STREAMS.wakeups, prefix: 'temper.wakeups.' },
  { stream: STREAMS.promotions, prefix: 'temper.promotions.' },
  { stream: STREAMS.promotions, prefix: 'temper.panel-reviews.' },
  { stream: STREAMS.events, prefix: 'temper.events.' },
  { stream: STREAMS.replies, prefix: 'temper.replies.' },
  { stream: STREAMS.deadLetters, prefix: 'temper.deadletters.' },
  ...[
    BUCKETS.sessions,
    BUCKETS.sessionTools,
    BUCKETS.sources,
    BUCKETS.memory,
    BUCKETS.evidence,
    BUCKETS.promotionStates,
    BUCKETS.acked,
    BUCKETS.deliveries,
    BUCKETS.pendingCalls,
    BUCKETS.childRequests,
    BUCKETS.tasks,
    BUCKETS.schedules,
    BUCKETS.triggers,
    BUCKETS.acceptedEvents,
  ].map((bucket) => ({
    stream: bucketStream(bucket),
    prefix: bucketSubject(bucket, ''),
  })),
];

/** Deletes all data of a deleted agent, in every stream and bucket except audit, activity, reports and ledger. Its entry in the list of agents with data stays. Idempotent. Throws TEMPER_BUS_*. */
export async function deleteAgentData(connection: JetStreamConnection, agentUid: string): Promise<void> {
  const uid = token(agentUid);
  for (const { stream, prefix } of AGENT_SUBJECTS) {
    await purge(connection, stream, `${prefix}${uid}`);
    await purge(connection, stream, `${prefix}${uid}.>`);
  }
}
