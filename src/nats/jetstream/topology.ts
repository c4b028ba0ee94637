import {
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type JetStreamAccountStats,
  type StreamInfo,
  JetStreamApiError,
} from '@nats-io/jetstream';
import { messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { natsError, isStreamMissing } from '../connection/errors.ts';
import { removeConsumers } from '../inbox/remove-consumers.ts';
import { bucketStreams } from './buckets.ts';
import { MAX_CONSUMERS, STREAMS } from './names.ts';
import { initialSequence } from './store-generation.ts';

export interface TopologyOptions {
  /** 1, or 3 on three servers. */
  replicas?: number;
  /** Size of the server's store (`max_file_store`), which the streams share. Default `DEFAULT_STORE_BYTES`. */
  storeBytes?: number;
  /** Called with the size of each stream that exists already. */
  onUsage?: (usage: StreamUsage) => void;
}

/** How full a stream is. */
export interface StreamUsage {
  stream: string;
  messages: number;
  bytes: number;
  maxBytes: number;
  /** Messages that the stream had and has not any more. */
  removed: number;
  /** Time of the oldest message; of the year 1 without one. */
  firstTime: Date;
  copies: StreamCopies;
}

/** The copies of a stream on the servers of a cluster. */
export interface StreamCopies {
  declared: number;
  /** Up to date, the leader included; 0 without a leader. */
  current: number;
  /** Operations by which the slowest copy is behind. */
  lag: number;
}

export interface TopologyReport {
  created: string[];
  updated: string[];
  /** Human-readable differences that cannot be changed in place, and limits of the account that are too low. */
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
  | 'max_consumers'
  | 'max_msgs'
  | 'max_msg_size'
  | 'max_msgs_per_subject'
  | 'duplicate_window'
  | 'num_replicas'
  | 'allow_direct'
  | 'allow_rollup_hdrs'
  | 'allow_msg_ttl'
>;

interface StreamDeclaration {
  name: string;
  subjects: string[];
  /** Percent of the store. */
  storePercent: number;
  days: number;
  retention?: RetentionPolicy;
  discard?: DiscardPolicy;
  maxPerSubject?: number;
}

const MAX_MESSAGE_BYTES = 256 * 1_024;
const DUPLICATE_WINDOW_MINUTES = 30;
const NANOS_PER = { minute: 60_000_000_000, day: 86_400_000_000_000 };
/** Size of all streams together, unless the installation sets another; the server's `max_file_store` must be at least this. */
export const DEFAULT_STORE_BYTES = 6 * 1_024 ** 3;

/** Observed records of decisions about one namespace; further ones are rejected. */
export const MAX_NAMESPACE_RECORDS = 200_000;

/** Every stream. A full work queue rejects new messages, so that none is lost silently; full event streams discard the oldest. */
const DECLARED_STREAMS: readonly StreamDeclaration[] = [
  { ...workQueue(STREAMS.inbox, ['temper.inbox.*'], 7), storePercent: 16, maxPerSubject: 1_000 },
  {
    ...workQueue(STREAMS.promotions, ['temper.promotions.*', 'temper.panel-reviews.*'], 7),
    storePercent: 2,
    maxPerSubject: 100,
  },
  // Only the last request per agent counts: every wakeup asks for the same thing, a pod.
  {
    ...workQueue(STREAMS.wakeups, ['temper.wakeups.*'], 7),
    storePercent: 1,
    maxPerSubject: 1,
    discard: DiscardPolicy.Old,
  },
  { name: STREAMS.events, subjects: ['temper.events.*.*'], storePercent: 9, days: 1, maxPerSubject: 10_000 },
  { name: STREAMS.replies, subjects: ['temper.replies.*.*'], storePercent: 4, days: 1, maxPerSubject: 1_000 },
  // Rejects when full: observed evidence is never removed before its age. The limit per namespace keeps a part for the others.
  {
    name: STREAMS.audit,
    subjects: ['temper.audit.*'],
    storePercent: 14,
    days: 90,
    discard: DiscardPolicy.New,
    maxPerSubject: MAX_NAMESPACE_RECORDS,
  },
  { name: STREAMS.reports, subjects: ['temper.reports.*.*'], storePercent: 3, days: 90, maxPerSubject: 5_000 },
  // After the streams that became smaller for it: the server reserves the bytes of each.
  { name: STREAMS.activity, subjects: ['temper.activity.*.*'], storePercent: 4, days: 90, maxPerSubject: 20_000 },
  { name: STREAMS.deadLetters, subjects: ['temper.deadletters.*.*.*'], storePercent: 3, days: 30, maxPerSubject: 1 },
];

/** The configuration of all streams and buckets, in the server's format. */
export function desiredStreams(options: TopologyOptions = {}): DesiredStream[] {
  const streams = DECLARED_STREAMS.map((declared) => streamConfig(declared, options));
  const buckets = bucketStreams().map(({ hasMessageTtl, ...declared }) => ({
    ...streamConfig({ ...declared, maxPerSubject: 1 }, options),
    // One value per key. With DiscardNew per subject the server would reject an update; instead the new value replaces the old.
    discard_new_per_subject: false,
    // Other key-value clients delete a key with a rollup header.
    allow_rollup_hdrs: true,
    allow_msg_ttl: hasMessageTtl,
  }));
  return [...streams, ...buckets];
}

/** Creates or updates every stream and bucket. Never deletes one. Throws TEMPER_BUS_* when a stream cannot be read or created. */
export async function reconcileTopology(
  connection: JetStreamConnection,
  options: TopologyOptions = {},
): Promise<TopologyReport> {
  const report: TopologyReport = { created: [], updated: [], drift: [] };
  await connection.ready();
  const all = desiredStreams(options);
  try {
    report.drift.push(...accountProblems(await connection.manager.getAccountInfo(), all));
  } catch (error) {
    throw natsError(error, 'reading the limits of the account');
  }
  for (const desired of all) {
    try {
      const existing = await reconcileStream(connection, desired, report);
      if (existing !== undefined) options.onUsage?.(usageOf(existing));
    } catch (error) {
      throw natsError(error, `reconciling the stream ${desired.name}`);
    }
  }
  // An older release had one per agent. Without its pods they deliver nothing, but each costs the server memory.
  await removeConsumers(connection, STREAMS.inbox);
  return report;
}

async function reconcileStream(
  { manager, clock }: JetStreamConnection,
  desired: DesiredStream,
  report: TopologyReport,
): Promise<StreamInfo | undefined> {
  const existing = await streamInfo(manager, desired.name);
  if (existing === undefined) {
    // Only for events and replies: their followers resume with a sequence, which may belong to a store that was lost.
    const isFollowed = desired.name === STREAMS.events || desired.name === STREAMS.replies;
    const sequence = isFollowed ? { first_seq: initialSequence(clock.now()) } : {};
    await manager.streams.add({ ...desired, ...sequence });
    report.created.push(desired.name);
    return undefined;
  }
  const changed = changedFields(existing.config, desired);
  const immutable = changed.filter((field) => field === 'retention' || field === 'storage');
  for (const field of immutable) {
    report.drift.push(
      `stream ${desired.name}: ${field} is "${existing.config[field]}", not "${desired[field]}", and cannot be changed; delete the stream so that it is created again`,
    );
  }
  if (changed.length === immutable.length) return existing;
  const { retention, storage } = existing.config;
  try {
    await updateStream(manager, { ...desired, retention, storage }, existing.config);
    report.updated.push(desired.name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error;
    report.drift.push(
      `stream ${desired.name}: ${changed.join(', ')} differ and the server rejects the change: ${printable(messageOf(error), 200)}`,
    );
  }
  return existing;
}

/** Limits of the account that Temper reaches before its own. Each names the limit, its value and the least value that suffices. */
export function accountProblems({ limits }: Pick<JetStreamAccountStats, 'limits'>, all: DesiredStream[]): string[] {
  const storage = all.reduce((sum, { max_bytes }) => sum + max_bytes, 0);
  const rows = [
    ['max_consumers', limits.max_consumers, MAX_CONSUMERS, 'every gateway has a consumer of the ledger'],
    ['max_streams', limits.max_streams, all.length, 'every stream and bucket is a stream'],
    ['max_storage', limits.max_storage, storage, 'the streams together reserve it'],
  ] as const;
  return rows
    .filter(([, value, least]) => value > 0 && value < least)
    .map(
      ([name, value, least, why]) =>
        `the limit ${name} of the NATS account is ${value}, and Temper may need ${least}, because ${why}; raise it or set -1`,
    );
}

/** Servers before 2.15 cannot change `max_consumers` of a stream, and have no limit without it. */
async function updateStream(
  manager: JetStreamConnection['manager'],
  desired: DesiredStream,
  existing: StreamConfig,
): Promise<void> {
  try {
    await manager.streams.update(desired.name, desired as Partial<StreamConfig>);
  } catch (error) {
    const { max_consumers } = existing;
    if (!(error instanceof JetStreamApiError) || max_consumers === desired.max_consumers) throw error;
    await manager.streams.update(desired.name, { ...desired, max_consumers } as Partial<StreamConfig>);
  }
}

function usageOf({ config, state, cluster }: StreamInfo): StreamUsage {
  const { name: stream, max_bytes: maxBytes } = config;
  const copies = copiesOf(config.num_replicas, cluster);
  return {
    stream,
    messages: state.messages,
    bytes: state.bytes,
    maxBytes,
    removed: Math.max(0, state.last_seq - state.messages),
    firstTime: new Date(state.first_ts),
    copies,
  };
}

/** Without cluster information the stream is on one server that is no part of a cluster. */
export function copiesOf(declared: number, cluster: StreamInfo['cluster']): StreamCopies {
  if (cluster === undefined) return { declared, current: 1, lag: 0 };
  const { leader = '', replicas = [] } = cluster;
  const followers = replicas.filter(({ current, offline }) => current && offline !== true).length;
  // Absent, against its type, for a copy that is up to date.
  const lag = Math.max(0, ...replicas.map((replica) => (replica.lag as number | undefined) ?? 0));
  return { declared, current: leader === '' ? 0 : 1 + followers, lag };
}

async function streamInfo(manager: JetStreamConnection['manager'], stream: string): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(stream);
  } catch (error) {
    if (isStreamMissing(error)) return undefined;
    throw error;
  }
}

/** Names of the fields that differ. */
function changedFields(existing: StreamConfig, desired: DesiredStream): (keyof DesiredStream)[] {
  const fields = Object.keys(desired) as (keyof DesiredStream)[];
  return fields.filter((field) => JSON.stringify(existing[field] ?? false) !== JSON.stringify(desired[field]));
}

function streamConfig(
  declared: StreamDeclaration,
  { replicas = 1, storeBytes = DEFAULT_STORE_BYTES }: TopologyOptions,
): DesiredStream {
  const {
    name,
    subjects,
    storePercent: share,
    days,
    maxPerSubject: perSubject = -1,
    discard = DiscardPolicy.Old,
  } = declared;
  return {
    name,
    subjects,
    retention: declared.retention ?? RetentionPolicy.Limits,
    storage: StorageType.File,
    discard,
    discard_new_per_subject: discard === DiscardPolicy.New,
    max_bytes: Math.floor((storeBytes * share) / 100),
    max_age: days * NANOS_PER.day,
    max_msgs: -1,
    max_consumers: MAX_CONSUMERS,
    max_msg_size: MAX_MESSAGE_BYTES,
    max_msgs_per_subject: perSubject,
    duplicate_window: DUPLICATE_WINDOW_MINUTES * NANOS_PER.minute,
    num_replicas: replicas,
    allow_direct: true,
    allow_rollup_hdrs: false,
    allow_msg_ttl: false,
  };
}

/** A stream with work-queue retention: each message is stored until a consumer acknowledges it or a reader deletes it. */
function workQueue(name: string, subjects: string[], days: number) {
  return { name, subjects, days, retention: RetentionPolicy.Workqueue, discard: DiscardPolicy.New };
}
