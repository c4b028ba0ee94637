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
import { peerSession } from '../../nats/tasks/peer-tasks.ts';
import type { GatewayDeps } from '../deps.ts';
import { agentCard } from './card.ts';
import { invalidParameters, noPushNotifications, toProtocolError } from './errors.ts';
import { type PeerCall, sendPeerMessage } from './peer-messages.ts';
import { answerUpdate, isFinal, statusUpdate, taskOf, type TaskView } from './task.ts';
import { cancelTask, requireTask, taskChanges, viewOf } from './task-views.ts';

/** Less than a silent connection stays open. */
const MAX_WAIT_MS = 240_000;
const OUTPUT_MODES: readonly string[] = ['text/plain', 'text', 'application/json', '*/*', 'text/*'];

export interface HandledCall extends PeerCall {
  /** Aborts when the client disconnects or the gateway drains. */
  readonly signal: AbortSignal;
}

/**
 * The operations of the protocol for one request. The SDK's own handler keeps tasks in the memory of one process; here every replica
 * answers for every task from NATS. All errors are errors of the protocol.
 */
export class PeerRequestHandler implements A2ARequestHandler {
  readonly #call: HandledCall;
  readonly #deps: GatewayDeps;

  constructor(call: HandledCall, deps: GatewayDeps) {
    this.#call = call;
    this.#deps = deps;
  }

  async getAgentCard(): Promise<AgentCard> {
    return agentCard(this.#call.served, this.#deps.a2aUrl);
  }

  /** The same card: the gateway shows none without a token. */
  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return this.getAgentCard();
  }

  sendMessage(request: SendMessageRequest, context: ServerCallContext): Promise<Task> {
    return this.#guarded(async () => {
      const { message, configuration } = checkedSend(request, context);
      const task = await sendPeerMessage(this.#call, message, this.#deps);
      if (configuration?.returnImmediately !== true) {
        const signal = AbortSignal.any([this.#call.signal, AbortSignal.timeout(MAX_WAIT_MS)]);
        const options = { after: task.afterEvent, signal, untilInterrupted: true };
        for await (const { state } of taskChanges(this.#uid, task, options, this.#deps)) if (isFinal(state)) break;
      }
      const known = await requireTask(this.#call.served, task.message, this.#deps);
      return taskOf(await viewOf(this.#uid, known, this.#deps), configuration?.historyLength);
    });
  }

  async *sendMessageStream(request: SendMessageRequest, context: ServerCallContext): AsyncGenerator<StreamResponse> {
    yield* this.#guardedStream(async () => {
      const { message, configuration } = checkedSend(request, context);
      const task = await sendPeerMessage(this.#call, message, this.#deps);
      return { task, after: task.afterEvent, historyLength: configuration?.historyLength, untilInterrupted: true };
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse> {
    yield* this.#guardedStream(async () => {
      const task = await requireTask(this.#call.served, id, this.#deps);
      // Before the view: what happens between the two comes twice and not never.
      const after = await this.#deps.events.lastSequence(this.#uid, peerSession(task.caller, task.context));
      return { task, after, historyLength: undefined, untilInterrupted: false };
    });
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#guarded(async () => {
      const task = await requireTask(this.#call.served, id, this.#deps);
      return taskOf(await viewOf(this.#uid, task, this.#deps), historyLength);
    });
  }

  cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    return this.#guarded(async () => {
      const task = await requireTask(this.#call.served, id, this.#deps);
      return taskOf(await cancelTask(this.#uid, task, this.#deps));
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

  get #uid(): string {
    return this.#call.served.state.uid;
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#protocolError(error);
    }
  }

  /** The task as it is, its changes, and its answer before its last state. */
  async *#guardedStream(open: () => Promise<StreamStart>): AsyncGenerator<StreamResponse> {
    try {
      const { task, after, historyLength, untilInterrupted } = await open();
      const first = await viewOf(this.#uid, task, this.#deps);
      yield { payload: { $case: 'task', value: taskOf(first, historyLength) } };
      if (isFinal(first.state)) return;
      const options = { after, signal: this.#call.signal, untilInterrupted };
      for await (const view of taskChanges(this.#uid, task, options, this.#deps)) {
        yield* answerUpdate(view);
        yield statusUpdate(view);
      }
    } catch (error) {
      throw this.#protocolError(error);
    }
  }

  #protocolError(error: unknown): Error {
    const { log } = this.#deps;
    return toProtocolError(error, (cause) =>
      log.error({ error: cause, ...this.#call.logFields }, 'a call over A2A failed'),
    );
  }
}

interface StreamStart {
  task: TaskView['task'];
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
