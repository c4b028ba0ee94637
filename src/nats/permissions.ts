import { BUCKETS, bucketStream, CONSUMERS, STREAMS } from './names.ts';

/*
 * What the two roles may say to the server, request by request. Nobody may publish what the server says itself ($JS.EVENT, $SYS),
 * nobody but the operator makes or changes streams, and nobody at all deletes one.
 */
interface Permissions {
  publish: readonly string[];
  subscribe: readonly string[];
}

const ALL_STREAMS = [...Object.values(STREAMS), ...Object.values(BUCKETS).map((bucket) => bucketStream(bucket))];
const READ_BY_GATEWAY = ALL_STREAMS.filter((stream) => stream !== STREAMS.promotions && stream !== STREAMS.wakes);
/** Clearing what belongs to one session or one agent. */
const CLEARED = ALL_STREAMS.filter((stream) => stream !== STREAMS.audit && stream !== STREAMS.advisories);

export const gatewayPermissions: Permissions = {
  publish: [
    '$JS.API.INFO',
    ...['inbox', 'events', 'wakes', 'promotions', 'audit', 'deadletters'].map((name) => `temper.${name}.>`),
    ...Object.values(BUCKETS).map((bucket) => `$KV.${bucket}.>`),
    ...READ_BY_GATEWAY.flatMap(reading),
    `$JS.API.CONSUMER.CREATE.${STREAMS.inbox}.>`,
    `$JS.API.CONSUMER.INFO.${STREAMS.inbox}.*`,
    `$JS.API.CONSUMER.DELETE.${STREAMS.inbox}.*`,
    `$JS.API.CONSUMER.LIST.${STREAMS.inbox}`,
    `$JS.API.CONSUMER.MSG.NEXT.${STREAMS.inbox}.*`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.inbox}`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.deadLetters}`,
    ...working(STREAMS.advisories, CONSUMERS.deadLetters),
    ...following(STREAMS.events),
    ...following(bucketStream(BUCKETS.ledger)),
    ...[BUCKETS.sessions, BUCKETS.sessionTools].map((bucket) => `$JS.API.STREAM.PURGE.${bucketStream(bucket)}`),
    `$JS.ACK.${STREAMS.inbox}.>`,
  ],
  subscribe: [],
};

export const operatorPermissions: Permissions = {
  publish: [
    '$JS.API.INFO',
    ...['inbox', 'wakes', 'audit', 'deadletters'].map((name) => `temper.${name}.>`),
    `$KV.${BUCKETS.ledger}.>`,
    ...ALL_STREAMS.flatMap((stream) => [
      `$JS.API.STREAM.CREATE.${stream}`,
      `$JS.API.STREAM.UPDATE.${stream}`,
      ...reading(stream),
    ]),
    ...CLEARED.map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
    `$JS.API.CONSUMER.INFO.${STREAMS.inbox}.*`,
    `$JS.API.CONSUMER.DELETE.${STREAMS.inbox}.*`,
    `$JS.API.CONSUMER.LIST.${STREAMS.inbox}`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.inbox}`,
    `$JS.API.STREAM.MSG.DELETE.${STREAMS.deadLetters}`,
    // Gives back what is in flight with a pod that is gone.
    `$JS.ACK.${STREAMS.inbox}.>`,
    ...working(STREAMS.advisories, CONSUMERS.deadLetters),
    ...working(STREAMS.wakes, CONSUMERS.wakes),
    ...working(STREAMS.promotions, CONSUMERS.promotions),
    ...following(bucketStream(BUCKETS.ledger)),
  ],
  subscribe: [],
};

/** The one user of the system account: it may have the server read its configuration again, and nothing else. */
export const systemPermissions: Permissions = { publish: ['$SYS.REQ.SERVER.*.RELOAD'], subscribe: [] };

function reading(stream: string): string[] {
  return [`$JS.API.STREAM.INFO.${stream}`, `$JS.API.STREAM.MSG.GET.${stream}`, `$JS.API.DIRECT.GET.${stream}`];
}

/** One durable consumer that all replicas share. */
function working(stream: string, consumer: string): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.${consumer}`,
    `$JS.API.CONSUMER.CREATE.${stream}.${consumer}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ];
}

/** Readers of one's own, gone when one stops reading. */
function following(stream: string): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.FC.${stream}.>`,
  ];
}
