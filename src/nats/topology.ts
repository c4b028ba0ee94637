import {
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
  JetStreamApiError,
} from '@nats-io/jetstream';
import { messageOf } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { BusConnection } from './connection.ts';
import { busFailure, isStreamMissing } from './failures.ts';
import { BUCKETS, type BucketName, bucketStream, bucketSubject, STREAMS } from './names.ts';
import { firstPlace } from './store-beginning.ts';

export interface TopologyOptions {
  /** 1, or 3 on three servers. */
  replicas?: number;
  /** Bytes of the server's store, which the streams share: what the server was given. Default `DEFAULT_STORE_BYTES`. */
  storeBytes?: number;
}

export interface TopologyReport {
  created: string[];
  updated: string[];
  /** What differs and cannot be changed in place, in words. */
  drift: string[];
}

export type DesiredStream = Pick<
  StreamConfig,
  | 'name'
  | 'subjects'
  | 'retention'
  | 'storage'
  | 'discard'
  | 'discard_new_per_subject'
  | 'max_bytes'
  | 'max_age'
  | 'max_msgs'
  | 'max_msg_size'
  | 'max_msgs_per_subject'
  | 'duplicate_window'
  | 'num_replicas'
  | 'allow_direct'
  | 'allow_rollup_hdrs'
>;

interface Declared {
  name: string;
  subjects: string[];
  /** Percent of the store. */
  share: number;
  days: number;
  retention?: RetentionPolicy;
  discard?: DiscardPolicy;
  perSubject?: number;
}

const MESSAGE_BYTES = 256 * 1_024;
const DUPLICATES_MINUTES = 30;
const NANOS = { minute: 60_000_000_000, day: 86_400_000_000_000 };
/** What all streams take together unless an installation says otherwise; the server must be given as much. */
export const DEFAULT_STORE_BYTES = 6 * 1_024 ** 3;
const ADVISORY = '$JS.EVENT.ADVISORY.CONSUMER';

/** Every stream. What must not be lost in silence refuses when it is full; what is told as it happens lets the oldest go. */
const DECLARED_STREAMS: readonly Declared[] = [
  { ...queue(STREAMS.inbox, 'temper.inbox.*', 7), share: 20, perSubject: 1_000 },
  { ...queue(STREAMS.promotions, 'temper.promotions.*', 7), share: 4, perSubject: 100 },
  // The one before the last is no news: a wake asks for a pod, whatever wanted it.
  { ...queue(STREAMS.wakes, 'temper.wakes.*', 7), share: 1, perSubject: 1, discard: DiscardPolicy.Old },
  { name: STREAMS.events, subjects: ['temper.events.*.*'], share: 20, days: 1, perSubject: 10_000 },
  { name: STREAMS.audit, subjects: ['temper.audit.*'], share: 15, days: 90 },
  { name: STREAMS.deadLetters, subjects: ['temper.deadletters.*.*.*'], share: 5, days: 30, perSubject: 1 },
  {
    ...queue(STREAMS.advisories, `${ADVISORY}.MAX_DELIVERIES.${STREAMS.inbox}.*`, 7),
    subjects: [`${ADVISORY}.MAX_DELIVERIES.${STREAMS.inbox}.*`, `${ADVISORY}.MSG_TERMINATED.${STREAMS.inbox}.*`],
    share: 1,
    discard: DiscardPolicy.Old,
  },
];

const DECLARED_BUCKETS: readonly { name: BucketName; share: number; days: number; discard?: DiscardPolicy }[] = [
  { name: BUCKETS.sessions, share: 16, days: 180 },
  { name: BUCKETS.sessionTools, share: 8, days: 7 },
  // No age: it is what an agent keeps.
  { name: BUCKETS.memory, share: 5, days: 0 },
  { name: BUCKETS.ledger, share: 2, days: 62 },
  { name: BUCKETS.health, share: 1, days: 0 },
  // Longer than a duplicate can be stored and a message be delivered again. Full, it must not keep a message from ending.
  { name: BUCKETS.settled, share: 2, days: 1, discard: DiscardPolicy.Old },
];

/** The whole declaration, as the server takes it. */
export function desiredStreams(options: TopologyOptions = {}): DesiredStream[] {
  const streams = DECLARED_STREAMS.map((declared) => streamConfig(declared, options));
  const buckets = DECLARED_BUCKETS.map(({ name, share, days, discard = DiscardPolicy.New }) => ({
    ...streamConfig(
      {
        name: bucketStream(name),
        subjects: [bucketSubject(name, '>')],
        share,
        days,
        discard,
        perSubject: 1,
      },
      options,
    ),
    // One value a key, and never refused for being one more: a new value takes the place of the old.
    discard_new_per_subject: false,
    // How other key-value clients say that a key is gone.
    allow_rollup_hdrs: true,
  }));
  return [...streams, ...buckets];
}

/** Creates or updates every stream and bucket. Nothing is ever deleted. */
export async function reconcileTopology(
  connection: BusConnection,
  options: TopologyOptions = {},
): Promise<TopologyReport> {
  const report: TopologyReport = { created: [], updated: [], drift: [] };
  await connection.ready();
  for (const desired of desiredStreams(options)) {
    try {
      await reconcileStream(connection, desired, report);
    } catch (error) {
      throw busFailure(error, `reconciling the stream ${desired.name}`);
    }
  }
  return report;
}

async function reconcileStream(
  { manager, clock }: BusConnection,
  desired: DesiredStream,
  report: TopologyReport,
): Promise<void> {
  const found = await infoOf(manager, desired.name);
  if (found === undefined) {
    // Events alone are counted on: whoever follows them comes back with a place of the store that was lost.
    const counted = desired.name === STREAMS.events ? { first_seq: firstPlace(clock.now()) } : {};
    await manager.streams.add({ ...desired, ...counted });
    report.created.push(desired.name);
    return;
  }
  const different = differences(found.config, desired);
  const fixed = different.filter((field) => field === 'retention' || field === 'storage');
  for (const field of fixed) {
    report.drift.push(
      `stream ${desired.name}: ${field} is "${found.config[field]}", not "${desired[field]}", and cannot be changed; delete the stream to have it made anew`,
    );
  }
  if (different.length === fixed.length) return;
  const { retention, storage } = found.config;
  try {
    await manager.streams.update(desired.name, { ...desired, retention, storage } as Partial<StreamConfig>);
    report.updated.push(desired.name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error;
    report.drift.push(
      `stream ${desired.name}: ${different.join(', ')} differ and the server refuses the change: ${printable(messageOf(error), 200)}`,
    );
  }
}

async function infoOf(manager: BusConnection['manager'], stream: string): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(stream);
  } catch (error) {
    if (isStreamMissing(error)) return undefined;
    throw error;
  }
}

/** Names of the fields that differ. */
function differences(found: StreamConfig, desired: DesiredStream): (keyof DesiredStream)[] {
  const fields = Object.keys(desired) as (keyof DesiredStream)[];
  return fields.filter((field) => JSON.stringify(found[field] ?? false) !== JSON.stringify(desired[field]));
}

function streamConfig(
  declared: Declared,
  { replicas = 1, storeBytes = DEFAULT_STORE_BYTES }: TopologyOptions,
): DesiredStream {
  const { name, subjects, share, days, perSubject = -1, discard = DiscardPolicy.Old } = declared;
  return {
    name,
    subjects,
    retention: declared.retention ?? RetentionPolicy.Limits,
    storage: StorageType.File,
    discard,
    discard_new_per_subject: discard === DiscardPolicy.New,
    max_bytes: Math.floor((storeBytes * share) / 100),
    max_age: days * NANOS.day,
    max_msgs: -1,
    max_msg_size: MESSAGE_BYTES,
    max_msgs_per_subject: perSubject,
    duplicate_window: DUPLICATES_MINUTES * NANOS.minute,
    num_replicas: replicas,
    allow_direct: true,
    allow_rollup_hdrs: false,
  };
}

/** Messages that one of several takes, each kept until it is acknowledged. */
function queue(name: string, subject: string, days: number) {
  return { name, subjects: [subject], days, retention: RetentionPolicy.Workqueue, discard: DiscardPolicy.New };
}
