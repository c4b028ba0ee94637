import type { ToolCategory } from '../types.ts';

/**
 * `completed`: the agent answered. `failed`: the message became a dead letter, or its answer was cut or refused. `excused`: it could not be
 * answered for a cause outside the agent, such as its quota or its model provider; such a message is no task.
 */
export type TaskOutcome = 'completed' | 'failed' | 'excused';

/** How one message of a user ended. */
export interface TaskRecord {
  /** Epoch milliseconds. */
  readonly endedAt: number;
  readonly outcome: TaskOutcome;
  /** Deliveries that the message needed; 1 when the first one ended it. */
  readonly deliveries: number;
  /** The rating by users, 0 to 10. */
  readonly rating?: number;
  /** The tool categories that the gateway carried for the task, or that its rating names. */
  readonly categories: readonly ToolCategory[];
}

export interface TaskCounts {
  readonly tasks: number;
  readonly completed: number;
  readonly deliveries: number;
  /** Rated tasks. */
  readonly ratings: number;
  readonly ratingSum: number;
  /** Epoch milliseconds; absent without a failure. */
  readonly lastFailureAt?: number;
}

/** The records of one agent, folded. All rules decide over this alone. */
export interface TaskEvidence {
  readonly total: TaskCounts;
  readonly categories: ReadonlyMap<ToolCategory, TaskCounts>;
  /** The newest tasks, for the failure rate. */
  readonly recent: { readonly tasks: number; readonly failed: number };
  /** The tasks since the last quality check. */
  readonly unchecked: Pick<TaskCounts, 'ratings' | 'ratingSum'>;
  /** Epoch milliseconds, of any message; absent without one. */
  readonly lastTaskAt?: number;
}

/** From when on records count, in epoch milliseconds. */
export interface EvidenceMarks {
  /** When the level was last lowered. */
  readonly countFrom: number;
  /** The last quality check. */
  readonly checkedAt: number;
}

/** The newest tasks that decide about the failure rate. */
const RECENT_TASKS = 50;

const NO_TASKS: TaskCounts = { tasks: 0, completed: 0, deliveries: 0, ratings: 0, ratingSum: 0 };

/** The order of the records does not matter. */
export function foldEvidence(records: readonly TaskRecord[], { countFrom, checkedAt }: EvidenceMarks): TaskEvidence {
  const tasks = records.filter(({ outcome }) => outcome !== 'excused');
  const counted = tasks.filter(({ endedAt }) => endedAt > countFrom);
  const recent = counted.toSorted((a, b) => b.endedAt - a.endedAt).slice(0, RECENT_TASKS);
  const { ratings, ratingSum } = countTasks(tasks.filter(({ endedAt }) => endedAt > checkedAt));
  const lastTaskAt = records.reduce((latest, { endedAt }) => Math.max(latest, endedAt), Number.NEGATIVE_INFINITY);
  return {
    total: countTasks(counted),
    categories: byCategory(counted),
    recent: { tasks: recent.length, failed: recent.filter(({ outcome }) => outcome === 'failed').length },
    unchecked: { ratings, ratingSum },
    ...(Number.isFinite(lastTaskAt) ? { lastTaskAt } : {}),
  };
}

/** The counts of one tool category; zero for one without a task. */
export function countsOf({ categories, total }: TaskEvidence, category: ToolCategory | undefined): TaskCounts {
  return category === undefined ? total : (categories.get(category) ?? NO_TASKS);
}

/** The mean rating, 0 to 10; undefined without a rating. */
export function qualityOf({ ratings, ratingSum }: Pick<TaskCounts, 'ratings' | 'ratingSum'>): number | undefined {
  return ratings === 0 ? undefined : ratingSum / ratings;
}

function byCategory(records: readonly TaskRecord[]): Map<ToolCategory, TaskCounts> {
  const grouped = new Map<ToolCategory, TaskRecord[]>();
  for (const record of records) {
    for (const category of new Set(record.categories)) {
      grouped.set(category, [...(grouped.get(category) ?? []), record]);
    }
  }
  return new Map([...grouped].map(([category, own]) => [category, countTasks(own)]));
}

function countTasks(records: readonly TaskRecord[]): TaskCounts {
  const rated = records.flatMap(({ rating }) => rating ?? []);
  const failures = records.filter(({ outcome }) => outcome === 'failed').map(({ endedAt }) => endedAt);
  return {
    tasks: records.length,
    completed: records.length - failures.length,
    deliveries: records.reduce((sum, { deliveries }) => sum + deliveries, 0),
    ratings: rated.length,
    ratingSum: rated.reduce((sum, rating) => sum + rating, 0),
    ...(failures.length === 0 ? {} : { lastFailureAt: failures.reduce((a, b) => Math.max(a, b)) }),
  };
}
