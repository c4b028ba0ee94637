import {
  type Artifact,
  type Message,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
} from '@a2a-js/sdk';
import type { PeerOutcome, PeerTask } from '../bus/peer-task.ts';
import type { FinishReason } from '../bus/port.ts';
import type { ErrorCode } from '../lib/error-codes.ts';

/** Characters of a message that its task keeps in its history. */
const HISTORY_CHARACTERS = 2_000;

/** The answer of an agent. `format`: it is JSON that matches `spec.returns` of the agent. */
interface PeerAnswer {
  readonly kind: 'reply';
  readonly text: string;
  readonly finishReason: FinishReason;
  readonly format?: 'json';
}

/** How the work on the message of a task ended. */
export type PeerEnd = PeerAnswer | { readonly kind: 'failed'; readonly code: ErrorCode; readonly text: string };

/** What is known of a task at one moment. */
export interface TaskView {
  readonly task: PeerTask;
  readonly state: TaskState;
  /** RFC 3339: since when, as far as it is known. */
  readonly since: string;
  /** Why it is in this state. */
  readonly note?: string;
  readonly answer?: PeerAnswer;
}

const OUTCOME_STATES: Readonly<Record<PeerOutcome, TaskState>> = {
  Completed: TaskState.TASK_STATE_COMPLETED,
  Rejected: TaskState.TASK_STATE_REJECTED,
  Failed: TaskState.TASK_STATE_FAILED,
  Canceled: TaskState.TASK_STATE_CANCELED,
};
const FINAL: readonly TaskState[] = Object.values(OUTCOME_STATES);
const NOT_KEPT = 'the answer is not kept any more';
export const WAITS_FOR_APPROVAL =
  'a call of the agent waits for the approval of a user; the task goes on after the decision';

export function isFinal(state: TaskState): boolean {
  return FINAL.includes(state);
}

/** The part of the text that is kept for the history. */
export function historyText(text: string): string {
  return text.slice(0, HISTORY_CHARACTERS).toWellFormed();
}

/** A task whose message has ended as the session shows it. A refusal is an answer that says why. */
export function viewOfEnd(task: PeerTask, end: PeerEnd, now: string): TaskView {
  const since = task.ended?.at ?? now;
  if (end.kind === 'failed') {
    const outcome = end.code === 'TEMPER_CANCELLED' ? 'Canceled' : 'Failed';
    return { task, state: OUTCOME_STATES[outcome], since, note: `${end.text} (${end.code})` };
  }
  const state = OUTCOME_STATES[end.finishReason === 'refusal' ? 'Rejected' : 'Completed'];
  return { task, state, since, answer: end };
}

/** A task whose end is recorded and whose answer is not kept. */
export function viewOfRecord(task: PeerTask, ended: NonNullable<PeerTask['ended']>): TaskView {
  const note = ended.code === undefined ? NOT_KEPT : `the task ended with ${ended.code}`;
  return { task, state: OUTCOME_STATES[ended.outcome], since: ended.at, note };
}

/** The task as the caller reads it. Its history has at most the message itself. */
export function taskOf(view: TaskView, historyLength = 1): Task {
  const { message, context, text } = view.task;
  return {
    id: message,
    contextId: context,
    status: statusOf(view),
    artifacts: view.answer === undefined ? [] : [artifactOf(view.answer)],
    history: historyLength === 0 ? [] : [textMessage(view, Role.ROLE_USER, text)],
    metadata: undefined,
  };
}

export function statusUpdate(view: TaskView): StreamResponse {
  const { message, context } = view.task;
  const value = { taskId: message, contextId: context, status: statusOf(view), metadata: undefined };
  return { payload: { $case: 'statusUpdate', value } };
}

/** The answer of a task, whole. */
export function answerUpdate({ task, answer }: TaskView): StreamResponse[] {
  if (answer === undefined) return [];
  const value = {
    taskId: task.message,
    contextId: task.context,
    artifact: artifactOf(answer),
    append: false,
    lastChunk: true,
    metadata: undefined,
  };
  return [{ payload: { $case: 'artifactUpdate', value } }];
}

function statusOf(view: TaskView): TaskStatus {
  const message = view.note === undefined ? undefined : textMessage(view, Role.ROLE_AGENT, view.note);
  return { state: view.state, timestamp: view.since, message };
}

function textMessage({ task }: TaskView, role: Role, text: string): Message {
  const { message, context } = task;
  return {
    messageId: role === Role.ROLE_USER ? message : `${message}-status`,
    contextId: context,
    taskId: message,
    role,
    parts: [textPart(text)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function artifactOf({ text, finishReason, format }: NonNullable<TaskView['answer']>): Artifact {
  return {
    artifactId: 'answer',
    name: 'answer',
    description: finishReason === 'truncated' ? 'The answer was cut at a limit.' : '',
    parts: [{ ...textPart(text), mediaType: format === 'json' ? 'application/json' : 'text/plain' }],
    metadata: undefined,
    extensions: [],
  };
}

function textPart(value: string): Message['parts'][number] {
  return { content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' };
}
