import type {
  AgentCard,
  CancelTaskRequest,
  GetTaskRequest,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from '@a2a-js/sdk';
import { ContentTypeNotSupportedError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { PeerTask } from '../bus/peer-task.ts';
import { invalidParameters, noPushNotifications, toProtocolError } from './errors.ts';
import type { PeerCalls } from './peer-calls.ts';
import { answerUpdate, isFinal, statusUpdate, type TaskView, taskOf } from './task.ts';

/** Less than a silent connection stays open. */
const MAX_WAIT_MS = 240_000;
const OUTPUT_MODES: readonly string[] = ['text/plain', 'text', 'application/json', '*/*', 'text/*'];

/**
 * The operations of the protocol for one request. The SDK's own handler keeps tasks in the memory of one process; here they come from
 * where messages are stored. All errors are errors of the protocol.
 */
export class PeerRequestHandler<T extends PeerTask> implements A2ARequestHandler {
  readonly #calls: PeerCalls<T>;
  readonly #signal: AbortSignal;

  /** `signal`: aborts when the client disconnects or the server ends. */
  constructor(calls: PeerCalls<T>, signal: AbortSignal) {
    this.#calls = calls;
    this.#signal = signal;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#calls.card();
  }

  /** The same card: none is shown without a token. */
  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return this.getAgentCard();
  }

  sendMessage(request: SendMessageRequest, context: ServerCallContext): Promise<Task> {
    return this.#guarded(async () => {
      const { message, configuration } = checkedSend(request, context);
      const { historyLength, returnImmediately = false } = configuration ?? {};
      const task = await this.#calls.send(message);
      const end = returnImmediately ? undefined : await this.#endOf(task);
      return taskOf(end ?? (await this.#calls.view(await this.#calls.find(task.message))), historyLength);
    });
  }

  /** Undefined for a task that waits for an approval, or that has not ended in time. */
  async #endOf(task: T): Promise<TaskView | undefined> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(MAX_WAIT_MS)]);
    const options = { after: this.#calls.start(task), signal, untilInterrupted: true };
    for await (const view of this.#calls.changes(task, options)) if (isFinal(view.state)) return view;
    return undefined;
  }

  async *sendMessageStream(request: SendMessageRequest, context: ServerCallContext): AsyncGenerator<StreamResponse> {
    yield* this.#guardedStream(async () => {
      const { message, configuration } = checkedSend(request, context);
      const task = await this.#calls.send(message);
      const { historyLength } = configuration ?? {};
      return { task, after: this.#calls.start(task), historyLength, untilInterrupted: true };
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse> {
    yield* this.#guardedStream(async () => {
      const task = await this.#calls.find(id);
      // Before the view: what happens between the two comes twice and not never.
      const after = await this.#calls.position(task);
      return { task, after, historyLength: undefined, untilInterrupted: false };
    });
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#guarded(async () => {
      const task = await this.#calls.find(id);
      return taskOf(await this.#calls.view(task), historyLength);
    });
  }

  cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    return this.#guarded(async () => {
      const task = await this.#calls.find(id);
      return taskOf(await this.#calls.cancel(task));
    });
  }

  async listTasks(): Promise<never> {
    throw new UnsupportedOperationError('tasks are not listed: read each by its id');
  }

  async createTaskPushNotificationConfig(): Promise<never> {
    throw noPushNotifications();
  }

  async getTaskPushNotificationConfig(): Promise<never> {
    throw noPushNotifications();
  }

  async listTaskPushNotificationConfigs(): Promise<never> {
    throw noPushNotifications();
  }

  async deleteTaskPushNotificationConfig(): Promise<never> {
    throw noPushNotifications();
  }

  async #guarded<R>(work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (error) {
      throw toProtocolError(error, (cause) => this.#calls.unexpected(cause));
    }
  }

  /** The task as it is, its changes, and its answer before its last state. */
  async *#guardedStream(open: () => Promise<StreamStart<T>>): AsyncGenerator<StreamResponse> {
    try {
      const { task, after, historyLength, untilInterrupted } = await open();
      const first = await this.#calls.view(task);
      yield { payload: { $case: 'task', value: taskOf(first, historyLength) } };
      if (isFinal(first.state)) return;
      const options = { after, signal: this.#signal, untilInterrupted };
      for await (const view of this.#calls.changes(task, options)) {
        yield* answerUpdate(view);
        yield statusUpdate(view);
      }
    } catch (error) {
      throw toProtocolError(error, (cause) => this.#calls.unexpected(cause));
    }
  }
}

interface StreamStart<T> {
  task: T;
  after: number;
  historyLength: number | undefined;
  untilInterrupted: boolean;
}

/** Refuses by name what the request asks for and nothing here does. */
function checkedSend(
  { message, configuration }: SendMessageRequest,
  { tenant }: ServerCallContext,
): { message: NonNullable<SendMessageRequest['message']>; configuration: SendMessageRequest['configuration'] } {
  if (message === undefined) throw invalidParameters('params.message is missing');
  if (tenant !== undefined && tenant !== '')
    throw invalidParameters('params.tenant names nothing here: the path names the agent; leave it out');
  if (configuration?.taskPushNotificationConfig !== undefined) throw noPushNotifications();
  const modes = configuration?.acceptedOutputModes ?? [];
  if (modes.length > 0 && !modes.some((mode) => OUTPUT_MODES.includes(mode)))
    throw new ContentTypeNotSupportedError('the agent answers with text/plain or application/json; accept one of them');
  return { message, configuration };
}
