import { TOOL_CATEGORIES, type ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import { type Digest, isDigest } from '../../lib/canonical.ts';
import { isCount, isJsonObject, type Json } from '../../lib/json.ts';
import type { TaskOutcome } from '../../policy/trust/evidence.ts';
import type { MessageToolCalls, ToolCalls } from '../../tempering/hygiene/tool-calls.ts';
import { MAX_TASK_TOOLS } from '../../tempering/hygiene/tool-task.ts';

/** How a message at the start of a chain ended, as the gateway saw it. */
export interface TaskEnd {
  readonly message: string;
  readonly session: string;
  readonly outcome: TaskOutcome;
  readonly deliveries: number;
  /** Epoch milliseconds. */
  readonly endedAt: number;
  /** Set for a run of the schedule, which is no task: no user sent it, and an agent can schedule its own runs. */
  readonly source?: 'Schedule';
}

/** What users say about a task. */
export interface TaskRating {
  readonly rating: number;
  readonly category?: ToolCategoryName;
}

const OUTCOMES: readonly string[] = ['completed', 'failed', 'excused'] satisfies TaskOutcome[];
const CATEGORIES: ReadonlySet<string> = new Set(TOOL_CATEGORIES);
const MAX_RATING = 10;

export function isToolCategory(text: unknown): text is ToolCategoryName {
  return typeof text === 'string' && CATEGORIES.has(text);
}

/** Undefined for a value that is not a valid record. */
export function parseTaskEnd(message: string, value: Json | undefined): TaskEnd | undefined {
  if (!isJsonObject(value)) return undefined;
  const { session, outcome, deliveries, endedAt, source } = value;
  if (typeof session !== 'string' || typeof outcome !== 'string' || !OUTCOMES.includes(outcome)) return undefined;
  if (!isCount(deliveries) || !isCount(endedAt)) return undefined;
  const scheduled = source === 'Schedule' ? ({ source: 'Schedule' } as const) : {};
  return { message, session, outcome: outcome as TaskOutcome, deliveries, endedAt, ...scheduled };
}

export function parseTaskRating(value: Json | undefined): TaskRating | undefined {
  if (!isJsonObject(value)) return undefined;
  const { rating, category } = value;
  if (!isCount(rating) || rating > MAX_RATING) return undefined;
  return { rating, ...(isToolCategory(category) ? { category } : {}) };
}

/** A user asks to verify a deactivated tool of the agent again. */
export interface ReactivationOrder {
  readonly digest: Digest;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly requestedAt: number;
}

export function parseToolCalls(message: string, value: Json | undefined): MessageToolCalls | undefined {
  if (!isJsonObject(value)) return undefined;
  const { endedAt, tools } = value;
  if (!isCount(endedAt) || !Array.isArray(tools)) return undefined;
  return { message, endedAt, tools: tools.slice(0, MAX_TASK_TOOLS).flatMap((tool) => toolCallsIn(tool) ?? []) };
}

function toolCallsIn(value: Json): ToolCalls | undefined {
  if (!isJsonObject(value)) return undefined;
  const { digest, calls, failures } = value;
  return isDigest(digest) && isCount(calls) && isCount(failures) ? { digest, calls, failures } : undefined;
}

export function parseReactivationOrder(value: Json | undefined): ReactivationOrder | undefined {
  if (!isJsonObject(value)) return undefined;
  const { digest, reason, requestedAt } = value;
  const isValid = isDigest(digest) && typeof reason === 'string' && isCount(requestedAt);
  return isValid ? { digest, reason, requestedAt } : undefined;
}
