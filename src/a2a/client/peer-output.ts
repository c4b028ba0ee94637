import { type Artifact, type Message, type Part, type Task, TaskState } from '@a2a-js/sdk';
import { TemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';

/** States in which the task goes on by itself. */
const WORKING: readonly TaskState[] = [
  TaskState.TASK_STATE_UNSPECIFIED,
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
];
/** The state as the calling model reads it, in the words of the protocol. */
const NAMES: Readonly<Partial<Record<TaskState, string>>> = {
  [TaskState.TASK_STATE_SUBMITTED]: 'submitted',
  [TaskState.TASK_STATE_WORKING]: 'working',
  [TaskState.TASK_STATE_COMPLETED]: 'completed',
  [TaskState.TASK_STATE_FAILED]: 'failed',
  [TaskState.TASK_STATE_CANCELED]: 'canceled',
  [TaskState.TASK_STATE_REJECTED]: 'rejected',
  [TaskState.TASK_STATE_INPUT_REQUIRED]: 'input-required',
  [TaskState.TASK_STATE_AUTH_REQUIRED]: 'auth-required',
};
const FAILED: readonly TaskState[] = [
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
];
const MAX_FAILURE = 2_000;
const MAX_ID = 128;

function stateOf({ status }: Task): TaskState {
  return status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
}

export function isWorking(task: Task): boolean {
  return WORKING.includes(stateOf(task));
}

/** The output for a message, which is an answer without a task. */
export function outputOfMessage({ parts, contextId }: Message): JsonObject {
  return { state: 'completed', ...contentOf(parts), ...idOf('context', contextId) };
}

/**
 * The output for a task: the parts of its artifacts, or else what its status says. With a state such as `input-required`, the model goes on
 * with a further call that has the same `context` and `task`. Throws TEMPER_TOOL_FAILED for a task that has failed.
 */
export function outputOfTask(tool: string, task: Task): JsonObject {
  const state = stateOf(task);
  const said = task.status?.message?.parts ?? [];
  if (FAILED.includes(state)) {
    const { text } = contentOf(said);
    const why = text === '' ? '' : `: ${printable(text, MAX_FAILURE)}`;
    throw new TemperError('TEMPER_TOOL_FAILED', `"${tool}": the agent ended the task as ${NAMES[state]}${why}`);
  }
  const parts = task.artifacts.flatMap((artifact: Artifact) => artifact.parts);
  const ids = { ...idOf('context', task.contextId), ...idOf('task', task.id) };
  return { state: NAMES[state] ?? 'working', ...contentOf(parts.length === 0 ? said : parts), ...ids };
}

/** Texts as one text, data as a list. Models get no files: a line says that there is one. */
function contentOf(parts: readonly Part[]): { text: string; data?: Json[] } {
  const text = parts.flatMap((part) => textOf(part) ?? []).join('\n\n');
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [(content.value ?? null) as Json] : []));
  return data.length === 0 ? { text } : { text, data };
}

function textOf({ content, filename, mediaType }: Part): string | undefined {
  if (content?.$case === 'text') return content.value;
  if (content?.$case === 'data') return undefined;
  return `[file: ${printable(filename === '' ? mediaType : filename, 200)}]`;
}

/** Another agent chose it, and the model sends it back. */
function idOf(name: 'context' | 'task', id: string): JsonObject {
  return id === '' ? {} : { [name]: printable(id, MAX_ID) };
}
