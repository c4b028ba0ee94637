import { TOOL_CATEGORIES, type ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import { MAX_TASK_RECORDS } from '../../api/v1alpha1/trust/strategy.ts';
import { type Digest, isDigest } from '../../lib/canonical.ts';
import { isCount, isJsonObject, type Json, member } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { TaskOutcome, TaskRecord } from '../../policy/trust/evidence.ts';
import { MAX_TASK_TOOLS, type ToolTask, toToolTask } from '../../tempering/hygiene/tool-task.ts';

/** An agent of a state folder. */
export interface LocalAgent {
  readonly name: string;
  readonly namespace: string;
}

/** How one message of a user ended. */
export interface LocalTask {
  /** Names the record. */
  readonly id: string;
  readonly session: string;
  readonly outcome: TaskOutcome;
  /** Epoch milliseconds. */
  readonly endedAt: number;
  /** The categories of the tools that were called. */
  readonly categories: readonly ToolCategoryName[];
  /** The forged tools that the agent itself called. */
  readonly tools: readonly Digest[];
}

export interface LocalRating {
  readonly rating: number;
  readonly category?: ToolCategoryName;
}

const OUTCOMES: readonly string[] = ['completed', 'failed', 'excused'] satisfies TaskOutcome[];
const CATEGORIES: ReadonlySet<Json | undefined> = new Set(TOOL_CATEGORIES);
const MAX_RATING = 10;

const tasksOf = ({ namespace, name }: LocalAgent): string => `tasks/${namespace}/${name}`;
const ratingsOf = ({ namespace, name }: LocalAgent): string => `ratings/${namespace}/${name}`;

/** Records a task, and removes the oldest ones. Names sort by time. */
export async function recordTask(records: RecordStore, agent: LocalAgent, { id, ...task }: LocalTask): Promise<void> {
  await records.put(tasksOf(agent), id, { ...task, categories: [...task.categories], tools: [...task.tools] });
  const stored = await records.list(tasksOf(agent));
  for (const { name } of stored.slice(0, -MAX_TASK_RECORDS)) {
    await records.delete(tasksOf(agent), name);
    await records.delete(ratingsOf(agent), name);
  }
}

/** Sets the one rating of a task. */
export async function rateTask(
  records: RecordStore,
  agent: LocalAgent,
  task: string,
  { rating, category }: LocalRating,
): Promise<void> {
  await records.put(ratingsOf(agent), task, { rating, ...(category === undefined ? {} : { category }) });
}

/** The tasks of the agent, oldest first. Documents of another form are left out. */
export async function localTasks(records: RecordStore, agent: LocalAgent): Promise<LocalTask[]> {
  return (await records.list(tasksOf(agent))).flatMap(({ name, value }) => parseTask(name, value) ?? []);
}

/** A task for the rules of trust and for those of tools. */
export interface LocalTaskRecord extends TaskRecord {
  readonly tools: readonly Digest[];
}

/** The tasks with their ratings. */
export async function localTaskRecords(records: RecordStore, agent: LocalAgent): Promise<LocalTaskRecord[]> {
  const ratings = new Map((await records.list(ratingsOf(agent))).map(({ name, value }) => [name, value]));
  return (await localTasks(records, agent)).map(({ id, outcome, endedAt, categories, tools }) => {
    const rating = member(ratings.get(id), 'rating');
    const named = member(ratings.get(id), 'category');
    const task = {
      outcome,
      endedAt,
      tools,
      deliveries: 1,
      categories: isCategory(named) ? [...categories, named] : categories,
    };
    return isCount(rating) && rating <= MAX_RATING ? { ...task, rating } : task;
  });
}

/** The tasks that say something about tools. */
export async function localToolTasks(records: RecordStore, agent: LocalAgent): Promise<ToolTask[]> {
  return (await localTaskRecords(records, agent)).flatMap((task) => toToolTask(task, task.tools) ?? []);
}

function parseTask(id: string, value: Json): LocalTask | undefined {
  if (!isJsonObject(value)) return undefined;
  // Tasks of earlier versions name no tools.
  const { session, outcome, endedAt, categories, tools = [] } = value;
  if (typeof session !== 'string' || typeof outcome !== 'string' || !OUTCOMES.includes(outcome)) return undefined;
  if (!isCount(endedAt) || !Array.isArray(categories) || !Array.isArray(tools)) return undefined;
  return {
    id,
    session,
    outcome: outcome as TaskOutcome,
    endedAt,
    categories: categories.filter(isCategory),
    tools: tools.filter(isDigest).slice(0, MAX_TASK_TOOLS),
  };
}

function isCategory(value: Json | undefined): value is ToolCategoryName {
  return CATEGORIES.has(value);
}
