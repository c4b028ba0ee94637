import type { BusConnection } from './connection.ts';
import { createInbox } from './inbox.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, token } from './names.ts';
import { countsOf, purge } from './stored.ts';

/** Where an agent's uid is the first token after the prefix. The audit and the ledger outlive the agent. */
const KEPT_BY_AGENT: readonly { stream: string; prefix: string }[] = [
  { stream: STREAMS.inbox, prefix: 'temper.inbox.' },
  { stream: STREAMS.wakes, prefix: 'temper.wakes.' },
  { stream: STREAMS.promotions, prefix: 'temper.promotions.' },
  { stream: STREAMS.events, prefix: 'temper.events.' },
  { stream: STREAMS.deadLetters, prefix: 'temper.deadletters.' },
  ...[BUCKETS.sessions, BUCKETS.sessionTools, BUCKETS.memory, BUCKETS.settled].map((bucket) => ({
    stream: bucketStream(bucket),
    prefix: bucketSubject(bucket, ''),
  })),
];

/** Removes everything of an agent that is gone, in every stream and bucket but audit and ledger. */
export async function sweepAgent(connection: BusConnection, agentUid: string): Promise<void> {
  const uid = token(agentUid);
  // The consumer first, so that nothing is delivered while its messages go.
  await createInbox(connection).remove(uid);
  for (const { stream, prefix } of KEPT_BY_AGENT) {
    await purge(connection, stream, `${prefix}${uid}`);
    await purge(connection, stream, `${prefix}${uid}.>`);
  }
}

/** Uids of all agents that anything is kept for. What of these no Agent has any more is swept. */
export async function agentsWithLeftovers(connection: BusConnection): Promise<string[]> {
  const found = new Set(await createInbox(connection).agents());
  for (const { stream, prefix } of KEPT_BY_AGENT) {
    for (const subject of Object.keys(await countsOf(connection, stream, `${prefix}>`))) {
      const [uid = ''] = subject.slice(prefix.length).split('.');
      if (uid !== '') found.add(uid);
    }
  }
  return [...found].sort();
}
