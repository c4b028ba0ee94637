import type { AgentCard, Message } from '@a2a-js/sdk';
import type { PeerTask } from '../bus/peer-task.ts';
import type { TaskView } from './task.ts';

export interface TaskChangesOptions {
  /** The changes after this position. */
  readonly after: number;
  readonly signal: AbortSignal;
  /** Ends also when the task waits for an approval. */
  readonly untilInterrupted: boolean;
}

/**
 * What one caller can do with one agent that serves it. Methods throw the errors of the protocol and TemperError, TEMPER_NOT_FOUND also for
 * tasks of other callers.
 */
export interface PeerCalls<T extends PeerTask> {
  card(): AgentCard;
  /** Stores the message once; a repeated one, by its id, is the same task. Throws TEMPER_RATE_LIMITED and TEMPER_BUS_*. */
  send(message: Message): Promise<T>;
  find(id: string): Promise<T>;
  /** The task at this moment. */
  view(task: T): Promise<TaskView>;
  /** The position before the first change of the task. */
  start(task: T): number;
  /** The position of the last change of its session. */
  position(task: T): Promise<number>;
  /** The task as it changes, until it ends or the signal aborts. */
  changes(task: T, options: TaskChangesOptions): AsyncGenerator<TaskView>;
  /** Ends a task that has not ended. Throws TaskNotCancelableError for one that has. */
  cancel(task: T): Promise<TaskView>;
  /** Reports an error that the caller gets no details of. */
  unexpected(error: unknown): void;
}
