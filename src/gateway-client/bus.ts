import type {
  Delivery,
  Envelope,
  FinishReason,
  MessageDraft,
  MessageReceiver,
  AskWait,
  MessageSender,
  Receipt,
  Task,
  TaskSender,
} from '../bus/port.ts';
import { parseMessageCall } from '../bus/message-call.ts';
import { DeliveryEnd, deliveryLost } from '../bus/delivery-end.ts';
import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import { type CallOptions, remainingMs } from '../lib/call-options.ts';
import type { SessionHistory } from '../agent/ports.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import { historyIn } from './stores.ts';
import { toolsIn } from './tools.ts';
import { assignmentIn, POLL_GRACE_MS, POLL_SECONDS } from './assignment.ts';
import type { GatewayClient } from './gateway-client.ts';
import { malformedResponse, requireNumber, requireObject, requireText } from '../gateway-api/response-parsing.ts';
import {
  ACCEPTED_MESSAGES_HEADER,
  type Assignment,
  ASSIGNMENT_VERSION_HEADER,
  CALL_MESSAGES,
  type DeliveryOutcome,
  type NextMessageRequest,
  type OutcomeContent,
  POD_API_PATHS,
  type SendMessageRequest,
  type TaskRequest,
} from '../gateway-api/pod-api.ts';
import { MAX_TASK_WAIT_SECONDS } from '../gateway-api/polls/waits.ts';

/** A delivery with its delivery token. Its methods throw as those of `Delivery`; each takes the deadline and the signal of its call. */
export interface RemoteDelivery extends Delivery {
  /** Acknowledgement timeout in milliseconds: without an outcome or an extension by then the message is redelivered. */
  ackTimeoutMs: number;
  /** What the gateway delivered of the session with the message. */
  session: DeliveredSession;
  /** Restarts the acknowledgement timeout; does not end the delivery. */
  extend(op: CallOptions): Promise<void>;
  /** Acknowledges the message and publishes the reply for its sender. `content` is stored before. */
  ackWithReply(reply: string, finishReason: FinishReason, op: CallOptions, content?: OutcomeContent): Promise<void>;
  /** Returns the message; it is redelivered after the delay. */
  redeliver(delayMs: number, op: CallOptions, content?: OutcomeContent): Promise<void>;
  /** The message waits until one of these requests is decided; then it is redelivered. */
  park(requests: readonly string[], op: CallOptions, content?: OutcomeContent): Promise<void>;
  /** Dead-letters the message. */
  deadLetter(code: ErrorCode, message: string, op: CallOptions, content?: OutcomeContent): Promise<void>;
}

/** What ended a poll: a message, another assignment, or neither. */
export interface PollResult {
  readonly delivery?: RemoteDelivery;
  readonly assignment?: Assignment;
  /** Whether the gateway watched the assignment. A delivery does not say. */
  readonly watchesAssignment?: boolean;
}

/** What is absent is read when the work starts. */
interface DeliveredSession {
  history?: SessionHistory;
  tools?: RegisteredTool[];
}

export interface RemoteBusOptions {
  client: GatewayClient;
  clock: Clock;
  ids: IdGenerator;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
}

const SETTLE_MS = 20_000;

/** Receives the messages of this pod's agent, and sends messages to other agents while it works on one. */
export class RemoteBus implements MessageSender, MessageReceiver, TaskSender {
  readonly #options: RemoteBusOptions;
  #restarted = true;

  constructor(options: RemoteBusOptions) {
    this.#options = options;
  }

  async send(draft: MessageDraft, op: CallOptions): Promise<Receipt> {
    return this.#send({ deliveryToken: this.#options.deliveryToken(), draft }, op);
  }

  async ask(draft: MessageDraft, wait: AskWait, op: CallOptions): Promise<Task> {
    const { stated } = wait;
    const ask = stated === undefined ? {} : { wait: stated };
    const { id } = await this.#send({ deliveryToken: this.#options.deliveryToken(), draft, ask }, op);
    return this.task(id, wait.milliseconds, op);
  }

  /** Polls as long as one request may wait, and reads at least once. */
  async task(ticket: string, waitMs: number, op: CallOptions): Promise<Task> {
    const { client, clock, deliveryToken } = this.#options;
    const until = clock.monotonic() + waitMs;
    for (;;) {
      const waitSeconds = Math.max(0, Math.min(MAX_TASK_WAIT_SECONDS, (until - clock.monotonic()) / 1_000));
      const body: TaskRequest = { deliveryToken: deliveryToken(), ticket, waitSeconds };
      const timeoutMs = waitSeconds * 1_000 + POLL_GRACE_MS;
      const task = taskIn(await client.call({ method: 'POST', path: POD_API_PATHS.tasks, body, op, timeoutMs }));
      if (task.state !== 'Pending' || clock.monotonic() >= until) return task;
    }
  }

  async #send(body: SendMessageRequest, op: CallOptions): Promise<Receipt> {
    const answer = requireObject(
      await this.#options.client.call({ method: 'POST', path: POD_API_PATHS.messages, body, op }),
      'receipt',
    );
    return { id: requireText(answer, 'id', 'receipt'), duplicate: answer['duplicate'] === true };
  }

  /** Throws TEMPER_TIMEOUT when no message arrives by the operation's deadline. */
  async next(op: CallOptions): Promise<RemoteDelivery> {
    for (;;) {
      const remaining = remainingMs(op, this.#options.clock);
      if (remaining <= 0) throw new TemperError('TEMPER_TIMEOUT', 'no message arrived in time');
      const answer = await this.#poll(Math.min(POLL_SECONDS, remaining / 1_000), {}, op.signal);
      if (answer !== undefined) return this.#delivery(answer);
    }
  }

  /**
   * One request, which waits for a message and for another assignment than that of the version. A gateway of an older release waits for a
   * message only. Throws TEMPER_CANCELLED when the signal aborts, and what `GatewayClient.call` throws.
   */
  async poll(assignmentVersion: string, signal: AbortSignal): Promise<PollResult> {
    const headers = { [ASSIGNMENT_VERSION_HEADER]: assignmentVersion };
    const answer = await this.#poll(POLL_SECONDS, headers, signal);
    if (answer === undefined) return { watchesAssignment: false };
    const { message, assignment } = requireObject(answer, 'answer');
    if (message !== undefined) return { delivery: this.#delivery(answer) };
    return { watchesAssignment: true, ...(assignment === undefined ? {} : { assignment: assignmentIn(assignment) }) };
  }

  async #poll(waitSeconds: number, headers: Record<string, string>, signal: AbortSignal): Promise<Json | undefined> {
    const { client, clock, ids } = this.#options;
    const body: NextMessageRequest = { waitSeconds, ...(this.#restarted ? { restarted: true } : {}) };
    const timeoutMs = waitSeconds * 1_000 + POLL_GRACE_MS;
    const answer = await client.call({
      method: 'POST',
      path: POD_API_PATHS.nextMessage,
      body,
      headers: { ...headers, [ACCEPTED_MESSAGES_HEADER]: CALL_MESSAGES },
      // Each poll has its own idempotency key: a replayed response would be a message processed twice.
      op: { signal, deadline: clock.monotonic() + timeoutMs, key: ids.next('poll') },
      timeoutMs,
    });
    this.#restarted = false;
    return answer;
  }

  #delivery(answer: Json): RemoteDelivery {
    const value = requireObject(answer, 'delivery');
    const message = envelopeIn(value['message']);
    const deliveryToken = requireText(value, 'deliveryToken', 'delivery');
    const ackTimeoutMs = requireNumber(value, 'ackTimeoutMs', 'delivery');
    const ended = new DeliveryEnd();
    const settle = (outcome: DeliveryOutcome, op: CallOptions): Promise<void> =>
      ended.end(() => this.#settle(outcome, op));
    const delivery: RemoteDelivery = {
      message,
      token: deliveryToken,
      ackTimeoutMs: ackTimeoutMs,
      session: sessionIn(value['session']),
      extend: async (op) => {
        ended.assertOpen();
        await this.#settle({ deliveryToken, action: 'extend' }, op);
      },
      ackWithReply: (reply, finishReason, op, content) =>
        settle({ ...content, deliveryToken, action: 'ack', reply, finishReason }, op),
      redeliver: (delayMs, op, content) => settle({ ...content, deliveryToken, action: 'retry', delayMs }, op),
      park: (requests, op, content) =>
        settle({ ...content, deliveryToken, action: 'park', requests: [...requests] }, op),
      deadLetter: (code, text, op, content) =>
        settle({ ...content, deliveryToken, action: 'reject', code, message: text }, op),
      ack: () => delivery.ackWithReply('', 'complete', this.#op()),
      retry: (delayMs) => delivery.redeliver(delayMs, this.#op()),
      reject: (code) => delivery.deadLetter(code, 'the message cannot be processed', this.#op()),
    };
    return delivery;
  }

  #op(): CallOptions {
    const { clock, ids } = this.#options;
    const deadline = clock.monotonic() + SETTLE_MS;
    return { signal: new AbortController().signal, deadline, key: ids.next('settle') };
  }

  async #settle(body: DeliveryOutcome, op: CallOptions): Promise<void> {
    try {
      await this.#options.client.call({ method: 'POST', path: POD_API_PATHS.deliveries, body, op });
    } catch (error) {
      // The delivery is open when the gateway refused the items of the session.
      if (!isTemperError(error) || error.code === 'TEMPER_STATE_CORRUPT') throw error;
      if (!DELIVERY_ENDED.has(error.details['status'])) throw error;
      throw deliveryLost(error);
    }
  }
}

/** Not found, conflict, gone: this delivery has ended. */
const DELIVERY_ENDED: ReadonlySet<unknown> = new Set([404, 409, 410]);

function sessionIn(value: Json | undefined): DeliveredSession {
  if (value === undefined) return {};
  const { history, tools } = requireObject(value, 'session');
  return {
    ...(history === undefined ? {} : { history: historyIn(history) }),
    tools: toolsIn(tools),
  };
}

const TASK_STATES: ReadonlySet<unknown> = new Set(['Pending', 'Answered', 'Failed', 'Delivered']);

function taskIn(value: Json | undefined): Task {
  const task = requireObject(value, 'task');
  for (const key of ['ticket', 'agent', 'state']) requireText(task, key, 'task');
  if (TASK_STATES.has(task['state'])) return task as unknown as Task;
  throw malformedResponse('task.state');
}

function envelopeIn(value: Json | undefined): Envelope {
  const message = requireObject(value, 'message');
  for (const key of ['id', 'from', 'to', 'session', 'text', 'root', 'deadline', 'time'])
    requireText(message, key, 'message');
  requireNumber(message, 'depth', 'message');
  const { call: stated, ...rest } = message;
  if (stated === undefined) return rest as unknown as Envelope;
  const call = parseMessageCall(stated);
  if (call === undefined) throw malformedResponse('message.call');
  return { ...rest, call } as unknown as Envelope;
}
