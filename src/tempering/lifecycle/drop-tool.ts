import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { DROP_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { isSessionToolOf } from '../registry/visibility.ts';
import type { RegisteredTool, ToolScope } from '../types.ts';

/** The tools of a session, in this process or at the gateway. */
export interface DroppableTools {
  /** Active tools visible to the agent in a session; names are unique. */
  resolve(agent: string, namespace: string, session: string): RegisteredTool[];
  /** Removes one tool that this session of this agent forged. Idempotent. */
  drop(digest: Digest, scope: ToolScope, op: CallOptions): Promise<void>;
}

/** Dropping changes only what the agent itself made in this session. */
export const DROP_TOOL: ToolDescriptor = {
  name: DROP_TOOL_NAME,
  description: 'Drop a tool that you forged in this session and no longer need. Its name is free again.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', minLength: 1, maxLength: 63 } },
    required: ['name'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      dropped: { type: 'string' },
      digest: { type: 'string' },
      brokenTools: { type: 'array', items: { type: 'string' } },
    },
    required: ['dropped', 'digest', 'brokenTools'],
    additionalProperties: false,
  },
  category: 'code_execution',
  action: 'code:write',
  sideEffects: true,
  locality: 'Brokered',
};

/** The tool with which an agent drops tools of its session. `brokenTools` are composed tools that called the dropped one. */
export function createDropTool(tools: DroppableTools): Tool {
  return {
    descriptor: DROP_TOOL,
    async call(input, context) {
      const visible = tools.resolve(context.agent, context.namespace, context.session);
      const tool = droppable(nameIn(input), visible, context);
      await tools.drop(tool.digest, context, context.op);
      return { dropped: tool.artifact.name, digest: tool.digest, brokenTools: callersOf(tool, visible) };
    },
  };
}

function nameIn(input: Json): string {
  const name = member(input, 'name');
  return typeof name === 'string' ? name : '';
}

function droppable(name: string, visible: readonly RegisteredTool[], scope: ToolScope): RegisteredTool {
  const tool = visible.find(({ artifact }) => artifact.name === name);
  if (tool === undefined) {
    const own = visible.filter((other) => isSessionToolOf(other, scope)).map(({ artifact }) => artifact.name);
    const rest = own.length === 0 ? 'it forged none' : `it forged ${own.join(', ')}`;
    throw new TemperError(
      'TEMPER_TOOL_NOT_FOUND',
      `no forged tool of this session is named "${printable(name, 64)}"; ${rest}`,
    );
  }
  if (isSessionToolOf(tool, scope)) return tool;
  const why = tool.tier === 'Session' ? 'was imported by a user' : `has tier ${tool.tier}`;
  throw new TemperError('TEMPER_TOOL_NOT_DROPPABLE', `"${name}" ${why}, so only a user can remove it (temper demote)`);
}

function callersOf({ digest }: RegisteredTool, visible: readonly RegisteredTool[]): string[] {
  const pin = `@${digest}`;
  return visible
    .filter(({ artifact }) => artifact.implementation.steps?.some(({ tool }) => tool.endsWith(pin)) === true)
    .map(({ artifact }) => artifact.name);
}
