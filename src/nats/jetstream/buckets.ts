import { DiscardPolicy } from '@nats-io/jetstream';
import { BUCKETS, type BucketName, bucketStream, bucketSubject } from './names.ts';

interface BucketDeclaration {
  name: BucketName;
  /** Percent of the store. */
  storePercent: number;
  /** Maximum age of a value; 0 for none. In a shared stream each message has it as its time to live. */
  days: number;
  discard?: DiscardPolicy;
}

const DECLARED_BUCKETS: readonly BucketDeclaration[] = [
  { name: BUCKETS.sessions, storePercent: 13, days: 0 },
  { name: BUCKETS.sessionTools, storePercent: 5, days: 0 },
  // No maximum age: deleted with the tools.
  { name: BUCKETS.sources, storePercent: 2, days: 0 },
  // No maximum age: an agent's memory is kept until the agent is deleted.
  { name: BUCKETS.memory, storePercent: 5, days: 0 },
  // An input that no use repeated for a month says little about the present use of a tool.
  { name: BUCKETS.evidence, storePercent: 4, days: 30 },
  // Kept longer than any usual cool-down: a state that is forgotten lets the panel be asked again.
  { name: BUCKETS.promotionStates, storePercent: 1, days: 180 },
  { name: BUCKETS.verifications, storePercent: 1, days: 1 },
  { name: BUCKETS.ledger, storePercent: 2, days: 62 },
  { name: BUCKETS.health, storePercent: 1, days: 0 },
  // Kept longer than a duplicate can be stored and a message be redelivered. Discards the oldest, because a full bucket must
  // not prevent an ack.
  { name: BUCKETS.acked, storePercent: 2, days: 1, discard: DiscardPolicy.Old },
  // Kept longer than a message: a delivery must not be forgotten before its message.
  { name: BUCKETS.deliveries, storePercent: 1, days: 8 },
  // As long as the message of the call.
  { name: BUCKETS.pendingCalls, storePercent: 1, days: 8 },
  { name: BUCKETS.childRequests, storePercent: 1, days: 1 },
  { name: BUCKETS.tasks, storePercent: 2, days: 180 },
  { name: BUCKETS.schedules, storePercent: 1, days: 0 },
  // No maximum age: the limit of all fires of a trigger counts for as long as it exists.
  { name: BUCKETS.triggers, storePercent: 0.5, days: 0 },
  { name: BUCKETS.acceptedEvents, storePercent: 0.5, days: 1 },
  { name: BUCKETS.residents, storePercent: 1, days: 0 },
];

/** The stream behind one bucket, or behind several. */
export interface BucketStream {
  name: string;
  subjects: string[];
  storePercent: number;
  days: number;
  discard: DiscardPolicy;
  /** Buckets with other ages share the stream, so it has none of its own. */
  hasMessageTtl: boolean;
}

/** The streams of all buckets. */
export function bucketStreams(): BucketStream[] {
  const groups = Map.groupBy(DECLARED_BUCKETS, ({ name }) => bucketStream(name));
  return [...groups].map(([name, buckets]) => {
    const ages = new Set(buckets.map(({ days }) => days));
    const [age = 0] = ages;
    const hasMessageTtl = ages.size > 1;
    return {
      name,
      subjects: buckets.map((bucket) => bucketSubject(bucket.name, '>')),
      storePercent: buckets.reduce((sum, { storePercent }) => sum + storePercent, 0),
      days: hasMessageTtl ? 0 : age,
      discard: buckets[0]?.discard ?? DiscardPolicy.New,
      hasMessageTtl,
    };
  });
}

/** The time to live of a message in a stream that buckets with other ages share, as nats-server reads it: `24h`. */
export function messageTtlOf(subject: string): string | undefined {
  return TTL_BY_BUCKET.get(subject.split('.', 2)[1] ?? '');
}

const TTL_BY_BUCKET: ReadonlyMap<string, string> = new Map(
  bucketStreams()
    .filter(({ hasMessageTtl }) => hasMessageTtl)
    .flatMap(({ name }) => DECLARED_BUCKETS.filter((bucket) => bucketStream(bucket.name) === name && bucket.days > 0))
    .map(({ name, days }) => [name, `${days * 24}h`]),
);
