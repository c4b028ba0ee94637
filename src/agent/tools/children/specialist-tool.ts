import type { TaskSender } from '../../../bus/port.ts';
import { remainingMs } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { policyDenied } from '../../../tools/authorize.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../../../tools/contract.ts';
import { type AskToolDeps, taskResult } from '../ask-tool.ts';
import type { Children } from './port.ts';

export interface SpecialistToolDeps {
  /** Both are absent for an agent that is alone; every call then fails with TEMPER_NOT_FOUND. */
  children?: (session: string) => Children;
  tasks?: (session: string) => TaskSender;
  clock: Clock;
  /** As for `agent_message`. */
  onAnswer: AskToolDeps['onAnswer'];
  isTainted: AskToolDeps['isTainted'];
  decide: AskToolDeps['decide'];
}

/** What is left of the time of the call for its result. */
const RESULT_MS = 2_000;
const MAX_WAIT_MS = 600_000;

export const SPECIALIST_TOOL: ToolDescriptor = {
  name: 'spawn_specialist',
  description:
    'Have one task done by a new agent that you instruct. A judge may refuse it. It ends after its answer. Gives {agent, ticket, state, answer}. With state Pending the answer comes later as a message of this session; task_get reads it earlier.',
  inputSchema: {
    type: 'object',
    properties: {
      role: {
        type: 'string',
        pattern: '^[a-zA-Z][a-zA-Z0-9_-]*$',
        maxLength: 40,
        description: 'What it is, such as sql-reviewer; not system, user, assistant or tool',
      },
      instructions: { type: 'string', minLength: 1, maxLength: 8_192, description: 'How it works, for any task' },
      task: { type: 'string', minLength: 1, maxLength: 16_384, description: 'The task, with everything it needs' },
      reason: {
        type: 'string',
        minLength: 1,
        maxLength: 1_024,
        description: 'Why you cannot do the task yourself; the judge and approvers read it',
      },
      tools: {
        type: 'array',
        items: { type: 'string', minLength: 1, maxLength: 256 },
        maxItems: 20,
        description: 'Names or patterns of the tools that it may call, within your own; none when absent',
      },
    },
    required: ['role', 'instructions', 'task', 'reason'],
    additionalProperties: false,
  },
  category: 'communication',
  action: 'org:hire',
  sideEffects: true,
  locality: 'Brokered',
};

/** `spawn_specialist`. The gateway decides, asks the judge, starts the agent and gives it the task. */
export function specialistTool({ children, tasks, clock, onAnswer, isTainted, decide }: SpecialistToolDeps): Tool {
  return checkedTool({
    descriptor: SPECIALIST_TOOL,
    check(_input, caller) {
      const decision = decide(caller, { kind: 'Spawn' });
      if (decision.effect !== 'Allow') throw policyDenied(decision);
    },
    async call(input, context) {
      const { op } = context;
      if (children === undefined || tasks === undefined) {
        throw new TemperError('TEMPER_NOT_FOUND', 'no other agent can be started: this agent runs alone');
      }
      const { name, ticket } = await children(context.session).specialist(input, isTainted(context), op);
      const waitMs = Math.max(0, Math.min(MAX_WAIT_MS, remainingMs(op, clock) - RESULT_MS));
      return {
        agent: name,
        ...taskResult(await tasks(context.session).task(ticket, waitMs, op), { onAnswer }, context),
      };
    },
  });
}
