import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { TOOL_CATEGORIES, type ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import { MAX_TASK_RECORDS } from '../../api/v1alpha1/trust/strategy.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { TaskRecord } from '../../policy/trust/evidence.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import {
  EVERY_SUBJECT,
  keepLast,
  lastMessage,
  lastMessages,
  lastSequence,
  readMessages,
} from '../jetstream/stream-reader.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';
import type { AgentHistory } from '../../tempering/hygiene/tool-findings.ts';
import type { MessageToolCalls, ToolCalls } from '../../tempering/hygiene/tool-calls.ts';
import {
  isToolCategory,
  parseReactivationOrder,
  parseTaskEnd,
  parseTaskRating,
  parseToolCalls,
  type ReactivationOrder,
  type TaskEnd,
  type TaskRating,
} from './task-record.ts';
import { isUsageKey } from './usage-parts.ts';

type Stored = { readonly subject: string; readonly data: Uint8Array };

const STREAM = bucketStream(BUCKETS.tasks);
/** Records by which an agent may exceed the limit before the oldest ones are removed. */
const TRIM_STEP = 50;
const MAX_COUNTED_AGENTS = 20_000;
/** The subjects of an agent by what they record. Of each kind at most MAX_TASK_RECORDS and one step are stored. */
const TASK_KINDS = ['end.*', 'rating.*', 'use.*.*'];
/** Each category on its own: a task that used many must not remove what older tasks used. */
const USE_KINDS = TOOL_CATEGORIES.map((category) => `use.*.${category}`);
const TOOL_KINDS = ['tools.*.*', 'reactivation.*'];
/** Messages that asked for an answer; see `asks.ts`. */
const ASK_KIND = 'ask.*';
const KINDS = ['end.*', 'rating.*', ...USE_KINDS, ...TOOL_KINDS, ASK_KIND];

/**
 * What gateways saw of the tasks of agents, and what users say about them: `<agent>.end.<message>`, `<agent>.use.<message>.<category>` and
 * `<agent>.rating.<message>`, each with one value. `<agent>.tools.<message>.<delivery>` is the word of the pod about the forged tools that
 * the agent called, and `<agent>.reactivation.<digest>` the order of a user; `usage-parts.ts` has further keys. Only the newest records of each agent are kept. Methods throw
 * TEMPER_BUS_* and, for a namespace that stores too much, TEMPER_STORAGE_LIMIT_EXCEEDED.
 */
export interface TaskRecords {
  /** Records how a task ended; a repeated call changes nothing. */
  end(agentUid: string, end: TaskEnd): Promise<void>;
  /** Records that a task used a tool category through the gateway. Idempotent. */
  use(agentUid: string, message: string, category: ToolCategoryName): Promise<void>;
  /** Records which forged tools one delivery of a message called. Idempotent. */
  called(
    agentUid: string,
    of: Omit<MessageToolCalls, 'tools'> & { deliveries: number },
    tools: readonly ToolCalls[],
  ): Promise<void>;
  /** Asks to verify a deactivated tool again. */
  reactivate(agentUid: string, order: ReactivationOrder): Promise<void>;
  /** Sets the one rating of a task that has ended. */
  rate(agentUid: string, message: string, rating: TaskRating): Promise<void>;
  /** Reserves a record of a message that asks for an answer, before it is stored. */
  reserve(agentUid: string, bytes: number): Promise<void>;
  /** An ended task: the message, or the latest one of a session. */
  find(agentUid: string, of: { message: string } | { session: string }): Promise<TaskEnd | undefined>;
  /** The latest tasks of the agent. */
  read(agentUid: string): Promise<TaskRecord[]>;
}

export function createTaskRecords(
  connection: JetStreamConnection,
  quotaOf: (agentUid: string) => Pick<AgentQuota, 'reserve'>,
): TaskRecords {
  const added = new LRUCache<string, number>(entries(MAX_COUNTED_AGENTS));
  const put = async (agentUid: string, key: string, value: Json): Promise<void> => {
    await quotaOf(agentUid).reserve('tasks', Buffer.byteLength(JSON.stringify(value)));
    await publish(connection, subject(agentUid, key), value);
    await countAdded(agentUid);
  };
  const countAdded = async (agentUid: string): Promise<void> => {
    const count = (added.get(agentUid) ?? 0) + 1;
    added.set(agentUid, count % TRIM_STEP);
    if (count >= TRIM_STEP) await trim(connection, agentUid);
  };
  return {
    async end(agentUid, { message, ...end }) {
      await put(agentUid, `end.${token(message)}`, end);
    },
    async use(agentUid, message, category) {
      await put(agentUid, `use.${token(message)}.${category}`, 1);
    },
    async called(agentUid, { message, deliveries, endedAt }, tools) {
      const value = { endedAt, tools: tools.map((tool) => ({ ...tool })) };
      await put(agentUid, `tools.${token(message)}.${deliveries}`, value);
    },
    async reactivate(agentUid, order) {
      await put(agentUid, `reactivation.${order.digest.slice('sha256:'.length)}`, { ...order });
    },
    async rate(agentUid, message, rating) {
      await put(agentUid, `rating.${token(message)}`, { ...rating });
    },
    async reserve(agentUid, bytes) {
      await quotaOf(agentUid).reserve('tasks', bytes);
      await countAdded(agentUid);
    },
    read: (agentUid) => readTasks(connection, agentUid),
    async find(agentUid, of) {
      if ('message' in of) return findTaskEnd(connection, agentUid, of.message);
      let latest: TaskEnd | undefined;
      for await (const { subject: key, data } of readMessages(connection, STREAM, subject(agentUid, 'end.*'))) {
        const end = parseTaskEnd(key.split('.').at(-1) ?? '', parseJsonBytes(data));
        if (end?.session === of.session && end.endedAt >= (latest?.endedAt ?? 0)) latest = end;
      }
      return latest;
    },
  };
}

/** A task with the message that it was. */
export interface MessageTask extends TaskRecord {
  readonly message: string;
}

/** The tasks of one agent with their ratings and tool categories. */
export async function readTasks(connection: JetStreamConnection, agentUid: string): Promise<MessageTask[]> {
  const ends: TaskEnd[] = [];
  const ratings = new Map<string, TaskRating>();
  const categories = new Map<string, Set<ToolCategoryName>>();
  for await (const { key, value } of readRecords(connection, agentUid, TASK_KINDS)) {
    const [kind, message = '', category] = key;
    const end = kind === 'end' ? parseTaskEnd(message, value) : undefined;
    if (end !== undefined && end.source !== 'Schedule') ends.push(end);
    const rating = kind === 'rating' ? parseTaskRating(value) : undefined;
    if (rating !== undefined) ratings.set(message, rating);
    const used = kind === 'use' ? category : rating?.category;
    if (isToolCategory(used)) categories.set(message, (categories.get(message) ?? new Set()).add(used));
  }
  return ends.slice(-MAX_TASK_RECORDS).map(({ message, outcome, deliveries, endedAt }) => {
    const rating = ratings.get(message)?.rating;
    const task = { message, endedAt, outcome, deliveries, categories: [...(categories.get(message) ?? [])] };
    return rating === undefined ? task : { ...task, rating };
  });
}

/** The calls of forged tools that the pod of an agent reported, and the orders of users about its tools. */
export async function readToolRecords(
  connection: JetStreamConnection,
  agentUid: string,
): Promise<Pick<AgentHistory, 'calls'> & { readonly orders: readonly ReactivationOrder[] }> {
  const calls: MessageToolCalls[] = [];
  const orders: ReactivationOrder[] = [];
  for await (const { key, value } of readRecords(connection, agentUid, TOOL_KINDS)) {
    const [kind, message = ''] = key;
    const called = kind === 'tools' ? parseToolCalls(message, value) : undefined;
    if (called !== undefined) calls.push(called);
    const order = kind === 'reactivation' ? parseReactivationOrder(value) : undefined;
    if (order !== undefined) orders.push(order);
  }
  return { calls, orders };
}

/** The records of an agent of these kinds, those of each kind oldest first. `key`: the parts of the subject after the agent. */
async function* readRecords(
  connection: JetStreamConnection,
  agentUid: string,
  kinds: readonly string[],
): AsyncIterable<{ key: string[]; value: Json | undefined }> {
  const filters = kinds.map((kind) => subject(agentUid, kind));
  const { length } = subject(agentUid, '');
  for await (const { subject: key, data } of readSubjects(connection, filters))
    yield { key: key.slice(length).split('.'), value: parseJsonBytes(data) };
}

/** In one request, or in one per filter when there are too many. */
async function* readSubjects(connection: JetStreamConnection, filters: readonly string[]): AsyncIterable<Stored> {
  const all = await lastMessages(connection, STREAM, filters);
  if (all !== undefined) {
    yield* all;
    return;
  }
  for (const filter of filters) {
    yield* (await lastMessages(connection, STREAM, [filter])) ?? readMessages(connection, STREAM, filter);
  }
}

/** How one message at the start of a chain ended. */
export async function findTaskEnd(
  connection: JetStreamConnection,
  agentUid: string,
  message: string,
): Promise<TaskEnd | undefined> {
  const found = await lastMessage(connection, STREAM, subject(agentUid, `end.${token(message)}`));
  return found === undefined ? undefined : parseTaskEnd(message, parseJsonBytes(found.data));
}

/** How a run of the schedule of an agent ended. */
export interface ScheduledEnd extends Pick<TaskEnd, 'message' | 'outcome' | 'endedAt'> {
  readonly agentUid: string;
}

/** The ends of runs of schedules after this sequence, and the sequence to continue with. */
export async function scheduledEnds(
  connection: JetStreamConnection,
  after: number,
): Promise<{ ends: ScheduledEnd[]; sequence: number }> {
  const prefix = bucketSubject(BUCKETS.tasks, '');
  const filter = bucketSubject(BUCKETS.tasks, '*.end.*');
  const ends: ScheduledEnd[] = [];
  let sequence = after;
  for await (const { subject: key, data, seq } of readMessages(connection, STREAM, filter, after + 1)) {
    const [agentUid = '', , message = ''] = key.slice(prefix.length).split('.');
    const end = parseTaskEnd(message, parseJsonBytes(data));
    if (end?.source === 'Schedule') ends.push({ agentUid, message, outcome: end.outcome, endedAt: end.endedAt });
    sequence = seq;
  }
  return { ends, sequence };
}

/** The sequence of the newest record. */
export function lastTaskSequence(connection: JetStreamConnection): Promise<number> {
  return lastSequence(connection, STREAM);
}

/** The agents with a record after this sequence, and the sequence to continue with. */
export async function changedTasks(
  connection: JetStreamConnection,
  after: number,
): Promise<{ agentUids: ReadonlySet<string>; sequence: number }> {
  const agentUids = new Set<string>();
  let sequence = after;
  const prefix = bucketSubject(BUCKETS.tasks, '');
  for await (const { subject: key, seq } of readMessages(connection, STREAM, EVERY_SUBJECT, after + 1)) {
    const rest = key.slice(prefix.length);
    if (!isUsageKey(rest)) agentUids.add(rest.split('.')[0] ?? '');
    sequence = seq;
  }
  return { agentUids, sequence };
}

/** Removes the oldest records of the agent, of each kind. */
async function trim(connection: JetStreamConnection, agentUid: string): Promise<void> {
  for (const filter of KINDS) {
    await keepLast(connection, STREAM, subject(agentUid, filter), MAX_TASK_RECORDS);
  }
}

function subject(agentUid: string, key: string): string {
  return bucketSubject(BUCKETS.tasks, `${token(agentUid)}.${key}`);
}
