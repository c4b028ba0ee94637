import { BUCKETS, bucketStream, QUEUES, STREAMS, subjects, type StreamQueue } from '../jetstream/names.ts';
import { TRIMMED_STREAMS } from '../shares/stream-shares.ts';

/*
 * Subjects that the operator and the gateway may publish to, one per API request. No user may publish to the server's own subjects
 * ($JS.EVENT, $SYS), only the operator may create and update streams, and no user may delete one.
 */
interface RolePermissions {
  publish: readonly string[];
  subscribe: readonly string[];
}

const ALL_STREAMS = unique([
  ...Object.values(STREAMS),
  ...Object.values(BUCKETS).map((bucket) => bucketStream(bucket)),
]);
const GATEWAY_READABLE = ALL_STREAMS.filter((stream) => stream !== STREAMS.promotions && stream !== STREAMS.wakeups);
const EVIDENCE: readonly string[] = [STREAMS.audit, STREAMS.activity, STREAMS.reports];
/** Streams in which the operator may purge the subjects of a deleted agent. */
const PURGEABLE = ALL_STREAMS.filter((stream) => !EVIDENCE.includes(stream));

export const gatewayPermissions: RolePermissions = {
  publish: [
    '$JS.API.INFO',
    ...[
      'inbox',
      'notify',
      'events',
      'replies',
      'wakeups',
      'promotions',
      'audit',
      'activity',
      'reports',
      'deadletters',
    ].map((name) => `temper.${name}.>`),
    ...Object.values(BUCKETS).map((bucket) => `$KV.${bucket}.>`),
    ...GATEWAY_READABLE.flatMap(readSubjects),
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.inbox}`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.deadLetters}`,
    ...ephemeralConsumerSubjects(bucketStream(BUCKETS.ledger)),
    ...queueConsumerSubjects(QUEUES.panelReviews),
    ...unique(
      [BUCKETS.sessions, BUCKETS.sessionTools, BUCKETS.sources, BUCKETS.memory, BUCKETS.evidence, BUCKETS.tasks].map(
        (bucket) => bucketStream(bucket),
      ),
    ).map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
    ...TRIMMED_STREAMS.map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
  ],
  subscribe: ['temper.notify.>'],
};

export const operatorPermissions: RolePermissions = {
  publish: [
    '$JS.API.INFO',
    ...['inbox', 'notify', 'events', 'replies', 'wakeups', 'panel-reviews', 'audit', 'deadletters'].map(
      (name) => `temper.${name}.>`,
    ),
    // The bucket of deliveries: redelivers the in-flight message of a deleted pod.
    // The bucket of pending calls: removes calls that have ended.
    ...[
      BUCKETS.ledger,
      BUCKETS.residents,
      BUCKETS.deliveries,
      BUCKETS.pendingCalls,
      // Records how requests about child agents ended.
      BUCKETS.childRequests,
      BUCKETS.promotionStates,
      BUCKETS.verifications,
      // Encrypts sources with a new key.
      BUCKETS.sources,
      // Reports of pods that re-runs contradict count as failed tasks.
      BUCKETS.tasks,
      BUCKETS.schedules,
      // What events said about objects, and the events that gateways publish.
      BUCKETS.triggers,
      BUCKETS.acceptedEvents,
    ].map((bucket) => `$KV.${bucket}.>`),
    ...ALL_STREAMS.flatMap((stream) => [
      `$JS.API.STREAM.CREATE.${stream}`,
      `$JS.API.STREAM.UPDATE.${stream}`,
      ...readSubjects(stream),
    ]),
    ...PURGEABLE.map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
    // An older release had a consumer per agent.
    `$JS.API.CONSUMER.DELETE.${STREAMS.inbox}.*`,
    `$JS.API.CONSUMER.LIST.${STREAMS.inbox}`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.inbox}`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.deadLetters}`,
    ...queueConsumerSubjects(QUEUES.wakeups),
    ...queueConsumerSubjects(QUEUES.promotions),
    ...ephemeralConsumerSubjects(bucketStream(BUCKETS.ledger)),
  ],
  subscribe: [subjects.notifyPromotions(), subjects.notifyChildRequests()],
};

/** The one user of the system account: it may request a configuration reload, and nothing else. */
export const systemPermissions: RolePermissions = { publish: ['$SYS.REQ.SERVER.*.RELOAD'], subscribe: [] };

function readSubjects(stream: string): string[] {
  return [`$JS.API.STREAM.INFO.${stream}`, `$JS.API.STREAM.MSG.GET.${stream}`, `$JS.API.DIRECT.GET.${stream}`];
}

/** Create, read and pull from one durable consumer that all replicas share. */
function queueConsumerSubjects({ stream, consumer, filter }: StreamQueue): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.${consumer}.${filter}`,
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ];
}

/** Create, read and delete ephemeral consumers of a stream. */
function ephemeralConsumerSubjects(stream: string): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.FC.${stream}.>`,
  ];
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}
