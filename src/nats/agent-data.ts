import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, token } from './jetstream/names.ts';
import { messageCounts, purge } from './jetstream/stream-reader.ts';

/** Streams in which the agent's UID is the first token after the prefix. Audit and ledger are not listed: they outlive the agent. */
const AGENT_SUBJECTS: readonly { stream: string; prefix: string }[] = [
  { stream: STREAMS.inbox, prefix: 'temper.inbox.' },
  { stream: STREAMS.wakeups, prefix: 'temper.wakeups.' },
  { stream: STREAMS.promotions, prefix: 'temper.promotions.' },
  { stream: STREAMS.events, prefix: 'temper.events.' },
  { stream: STREAMS.deadLetters, prefix: 'temper.deadletters.' },
  ...[BUCKETS.sessions, BUCKETS.sessionTools, BUCKETS.memory, BUCKETS.acked, BUCKETS.deliveries].map((bucket) => ({
    stream: bucketStream(bucket),
    prefix: bucketSubject(bucket, ''),
  })),
];

/** Deletes all data of a deleted agent, in every stream and bucket except audit and ledger. Idempotent. Throws TEMPER_BUS_*. */
export async function deleteAgentData(connection: JetStreamConnection, agentUid: string): Promise<void> {
  const uid = token(agentUid);
  for (const { stream, prefix } of AGENT_SUBJECTS) {
    await purge(connection, stream, `${prefix}${uid}`);
    await purge(connection, stream, `${prefix}${uid}.>`);
  }
}

/** UIDs of all agents that have stored data. The caller deletes the data of those whose Agent no longer exists. */
export async function agentsWithData(connection: JetStreamConnection): Promise<string[]> {
  const found = new Set<string>();
  for (const { stream, prefix } of AGENT_SUBJECTS) {
    for (const subject of Object.keys(await messageCounts(connection, stream, `${prefix}>`))) {
      const [uid = ''] = subject.slice(prefix.length).split('.');
      if (uid !== '') found.add(uid);
    }
  }
  return [...found].sort();
}
