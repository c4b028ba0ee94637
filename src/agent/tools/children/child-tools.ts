import { TemperError } from '../../../lib/errors.ts';
import { type Json, member } from '../../../lib/json.ts';
import { childPrefix } from '../../../policy/children/child-name.ts';
import type { Decision, PolicyRequest } from '../../../policy/types.ts';
import { policyDenied } from '../../../tools/authorize.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import type { Children } from './port.ts';

export interface ChildToolDeps {
  /** Absent for an agent that is alone; every call then fails with TEMPER_NOT_FOUND. */
  children?: (session: string) => Children;
  /** Evaluates the agent's current policy for the child that a call asks for. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
}

const NAME = { type: 'string', minLength: 1, maxLength: 63 };

export const SPAWN_TOOL: ToolDescriptor = {
  name: 'agent_spawn',
  description:
    'Start a child agent: a copy of a template, or one with your own prompt and a part of your permissions. Gives {name}; send it work with agent_message. It ends with you, or with agent_kill.',
  inputSchema: {
    type: 'object',
    properties: {
      name: {
        ...NAME,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
        description: 'What the child does, such as log-reader',
      },
      template: { ...NAME, maxLength: 253, description: 'Name of a template; without prompt, tools and spec' },
      prompt: { type: 'string', minLength: 1, maxLength: 8_192, description: 'Instructions for the child' },
      tools: {
        type: 'array',
        items: { type: 'string', minLength: 1, maxLength: 256 },
        maxItems: 100,
        description: 'Names or patterns of the tools that it may call, within your own',
      },
      spec: { type: 'object', description: 'Further fields of the spec of an Agent, within your own' },
    },
    required: ['name'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
    additionalProperties: false,
  },
  category: 'communication',
  action: 'org:hire',
  sideEffects: true,
  locality: 'Brokered',
  examples: [{ name: 'log-reader', prompt: 'You read logs.', tools: ['file_read', 'text_search'] }],
  failures: [
    { code: 'TEMPER_CHILD_REFUSED', when: 'the child would have more than you have, or the policy permits no more' },
  ],
};

export const KILL_TOOL: ToolDescriptor = {
  name: 'agent_kill',
  description: 'End a child agent, with its own children and everything that it stored.',
  inputSchema: {
    type: 'object',
    properties: { agent: { type: 'string', minLength: 1, maxLength: 253, description: 'Name of the agent' } },
    required: ['agent'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { agent: { type: 'string' } },
    required: ['agent'],
    additionalProperties: false,
  },
  category: 'communication',
  // Not org:fire, which no agent may do: it ends only what an agent started.
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Brokered',
};

export const LIST_TOOL: ToolDescriptor = {
  name: 'agent_list',
  description: 'List the agents that you may message, your children among them, and the templates that you may copy.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: false,
  locality: 'Brokered',
};

/** `agent_spawn`, `agent_kill` and `agent_list`. The gateway decides about each request. */
export function childTools(deps: ChildToolDeps): Tool[] {
  return [
    checkedTool({
      descriptor: SPAWN_TOOL,
      check(input, caller) {
        const template = textOf(input, 'template');
        assertAllowed(deps.decide(caller, { kind: 'Spawn', ...(template === '' ? {} : { template }) }));
      },
      call: async (input, context) => ({ ...(await childrenOf(deps, context).spawn(input, context.op)) }),
    }),
    checkedTool({
      descriptor: KILL_TOOL,
      check(input, caller) {
        const agent = textOf(input, 'agent');
        // Whether it is a child is for the implementation of the port to decide; only these names can be.
        const child = agent.startsWith(childPrefix(caller.agent));
        assertAllowed(deps.decide(caller, { kind: 'Kill', agent, ...(child ? { child } : {}) }));
      },
      async call(input, context) {
        const agent = textOf(input, 'agent');
        await childrenOf(deps, context).kill(agent, context.op);
        return { agent };
      },
    }),
    { descriptor: LIST_TOOL, call: (_input, context) => childrenOf(deps, context).list(context.op) },
  ];
}

function assertAllowed(decision: Decision): void {
  if (decision.effect !== 'Allow') throw policyDenied(decision);
}

function childrenOf({ children }: ChildToolDeps, { session }: CallerContext): Children {
  if (children !== undefined) return children(session);
  throw new TemperError('TEMPER_NOT_FOUND', 'there are no other agents: this agent runs alone');
}

function textOf(input: Json, key: string): string {
  const value = member(input, key);
  return typeof value === 'string' ? value : '';
}
