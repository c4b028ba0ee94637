import type { Task, TaskSender } from '../../bus/port.ts';
import { remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, type JsonObject, member } from '../../lib/json.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { CallContext, CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import { assertMessageAllowed, receivingSession } from './send-tool.ts';

export interface AskToolDeps {
  /** Questions of a session. Absent for an agent that is alone; every call then fails with TEMPER_NOT_FOUND. */
  tasks?: (session: string) => TaskSender;
  clock: Clock;
  /** As for `agent_send`. */
  hasChildren?: boolean;
  /** Evaluates the agent's current policy for one receiver. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
  /** Whether the session has untrusted content, which its questions then carry. */
  isTainted(caller: CallerContext): boolean;
  /** Called before the session gets an answer. `tainted`: the session that gave it has untrusted content. */
  onAnswer(caller: CallerContext, tainted: boolean): void;
}

const MAX_WAIT_SECONDS = 600;
const DEFAULT_WAIT_SECONDS = 600;
/** What is left of the time of the call for its result. */
const RESULT_MS = 2_000;

const WAIT = {
  type: 'integer',
  minimum: 0,
  maximum: MAX_WAIT_SECONDS,
  description: 'Seconds to wait for the answer, within the timeout of the call; 0 returns the ticket at once',
};

const OUTPUT = {
  type: 'object',
  properties: {
    ticket: { type: 'string' },
    state: { type: 'string', enum: ['Pending', 'Answered', 'Failed', 'Delivered'] },
    answer: { type: 'string' },
    truncated: { type: 'boolean' },
    reason: { type: 'string' },
  },
  required: ['ticket', 'state'],
  additionalProperties: false,
};

export const ASK_TOOL: ToolDescriptor = {
  name: 'agent_message',
  description:
    'Send a message to another agent and wait for its answer. Gives {ticket, state, answer}. With state Pending the answer comes later as a message of this session; task_get reads it earlier.',
  inputSchema: {
    type: 'object',
    properties: {
      to: { type: 'string', description: 'Name of the agent', minLength: 1, maxLength: 253 },
      text: { type: 'string', minLength: 1, maxLength: 65_536 },
      session: { type: 'string', description: 'Session of the receiver; your own when absent', maxLength: 128 },
      wait: WAIT,
    },
    required: ['to', 'text'],
    additionalProperties: false,
  },
  outputSchema: OUTPUT,
  category: 'communication',
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Brokered',
};

export const TASK_TOOL: ToolDescriptor = {
  name: 'task_get',
  description:
    'Read the answer to a message that you sent with agent_message, by its ticket. Gives {ticket, state, answer}. An answer that you read here does not come as a message.',
  inputSchema: {
    type: 'object',
    properties: { ticket: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' }, wait: WAIT },
    required: ['ticket'],
    additionalProperties: false,
  },
  outputSchema: OUTPUT,
  category: 'communication',
  action: 'comms:internal',
  sideEffects: false,
  locality: 'Brokered',
};

/** `agent_message` and `task_get`: a message whose answer comes back. `grants.messages` decides which receivers are allowed. */
export function askTools(deps: AskToolDeps): Tool[] {
  return [askTool(deps), taskTool(deps)];
}

function askTool(deps: AskToolDeps): Tool {
  return checkedTool({
    descriptor: ASK_TOOL,
    check: (input, caller) => assertMessageAllowed(input, caller, deps),
    async call(input, context) {
      const to = textOf(input, 'to');
      const session = receivingSession(input, context);
      const tainted = deps.isTainted(context) ? { tainted: true } : {};
      const draft = { to, session, text: textOf(input, 'text'), ...tainted };
      const stated = member(input, 'wait');
      const wait = {
        milliseconds: waitMs(input, context, deps),
        ...(typeof stated === 'number' ? { stated } : {}),
      };
      return taskResult(await tasksOf(deps, context).ask(draft, wait, context.op), deps, context);
    },
  });
}

function taskTool(deps: AskToolDeps): Tool {
  return {
    descriptor: TASK_TOOL,
    async call(input, context) {
      const wait = waitMs(input, context, deps, 0);
      const task = await tasksOf(deps, context).task(textOf(input, 'ticket'), wait, context.op);
      return taskResult(task, deps, context);
    },
  };
}

function tasksOf({ tasks }: AskToolDeps, { session }: CallerContext): TaskSender {
  if (tasks !== undefined) return tasks(session);
  throw new TemperError('TEMPER_NOT_FOUND', 'no other agent can be reached: this agent runs alone');
}

/** The result has to arrive before the call times out. */
function waitMs(input: Json, { op }: CallContext, { clock }: AskToolDeps, standard = DEFAULT_WAIT_SECONDS): number {
  const stated = member(input, 'wait');
  const wanted = (typeof stated === 'number' ? stated : standard) * 1_000;
  return Math.max(0, Math.min(wanted, remainingMs(op, clock) - RESULT_MS));
}

/** What the model gets of a task. */
export function taskResult(task: Task, deps: Pick<AskToolDeps, 'onAnswer'>, context: CallContext): JsonObject {
  const { ticket, state, text, finishReason, reason, code } = task;
  if (text !== undefined || reason !== undefined) deps.onAnswer(context, task.tainted === true);
  return {
    ticket,
    state,
    ...(text === undefined ? {} : { answer: text }),
    ...(finishReason === undefined || finishReason === 'complete' ? {} : { truncated: true }),
    ...(reason === undefined ? {} : { reason: code === undefined ? reason : `${reason} (${code})` }),
  };
}

function textOf(input: Json, key: string): string {
  const value = member(input, key);
  return typeof value === 'string' ? value : '';
}
