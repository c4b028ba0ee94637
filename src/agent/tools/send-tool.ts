import type { MessageSender } from '../../bus/port.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { childPrefix } from '../../policy/children/child-name.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import { assertSessionId } from '../session/session-id.ts';

export interface SendToolDeps {
  /** Messages of a session. Absent for an agent that is alone; every call then fails with TEMPER_NOT_FOUND. */
  bus?: (session: string) => MessageSender;
  /** The gateway decides which receivers the agent started. Without it no receiver is a child. */
  hasChildren?: boolean;
  /** Evaluates the agent's current policy for one receiver. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
  /** Whether the session has untrusted content, which its messages then carry. */
  isTainted(caller: CallerContext): boolean;
}

export const SEND_TOOL: ToolDescriptor = {
  name: 'agent_send',
  description:
    'Send a message to another agent and go on without waiting for its answer. Gives {id}. Messages under one session belong to one conversation of the receiver.',
  inputSchema: {
    type: 'object',
    properties: {
      to: { type: 'string', description: 'Name of the agent', minLength: 1, maxLength: 253 },
      text: { type: 'string', minLength: 1, maxLength: 65_536 },
      session: { type: 'string', description: 'Session of the receiver; your own when absent', maxLength: 128 },
    },
    required: ['to', 'text'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { id: { type: 'string' } },
    required: ['id'],
    additionalProperties: false,
  },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Brokered',
};

/** `agent_send`: `grants.messages` decides which receivers are allowed. */
export function sendTool(deps: SendToolDeps): Tool {
  return checkedTool({
    descriptor: SEND_TOOL,
    check: (input, caller) => assertMessageAllowed(input, caller, deps),
    async call(input, context) {
      const to = textOf(input, 'to');
      if (deps.bus === undefined) {
        throw new TemperError('TEMPER_NOT_FOUND', `agent "${to}" cannot be reached: this agent runs alone`);
      }
      const session = receivingSession(input, context);
      const tainted = deps.isTainted(context) ? { tainted: true } : {};
      const draft = { to, session, text: textOf(input, 'text'), ...tainted };
      const { id } = await deps.bus(context.session).send(draft, context.op);
      return { id };
    },
  });
}

/** Refuses a receiver that the policy does not allow, and an invalid session. */
export function assertMessageAllowed(
  input: Json,
  caller: CallerContext,
  { decide, hasChildren }: Pick<SendToolDeps, 'decide' | 'hasChildren'>,
): void {
  const request = messageRequest(input, hasChildren === true ? caller.agent : undefined);
  const { effect, reason, rule } = decide(caller, request);
  if (effect !== 'Allow') throw new TemperError('TEMPER_POLICY_DENIED', reason, { details: { rule } });
  receivingSession(input, caller);
}

/** The session of the receiver that gets the message. Throws TEMPER_SESSION_INVALID. */
export function receivingSession(input: Json, caller: CallerContext): string {
  const named = textOf(input, 'session');
  const session = named === '' ? caller.session : named;
  assertSessionId(session);
  return session;
}

/**
 * The policy request of a call of `agent_send` or `agent_message`. The names of children start with the name of their parent; whether the
 * receiver is a child is for the gateway to decide.
 */
function messageRequest(input: Json, sender?: string): PolicyRequest {
  const agent = textOf(input, 'to');
  const mayBeChild = sender !== undefined && agent.startsWith(childPrefix(sender));
  return { kind: 'Message', agent, ...(mayBeChild ? { child: true } : {}) };
}

function textOf(input: Json, key: string): string {
  const value = member(input, key);
  return typeof value === 'string' ? value : '';
}
