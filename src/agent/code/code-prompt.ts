import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { ToolSpec } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { ToolOrder } from '../loop/tool-order.ts';
import type { ProviderOffer } from '../provider/port.ts';
import { FINISH_TOOL_NAME } from '../returns/finish.ts';
import { LIST_TOOLS_NAME, LOAD_TOOL_NAME } from './list-tools.ts';

/** The one tool of an agent in code mode. */
export const INVOKE_NAME = 'invoke';

export const INVOKE_TOOL: ToolDescriptor = {
  name: INVOKE_NAME,
  description: 'Runs JavaScript that calls tools. The code is the body of an async function.',
  inputSchema: {
    type: 'object',
    properties: { code: { type: 'string', description: 'The body of an async JavaScript function.' } },
    required: ['code'],
    additionalProperties: false,
  },
  category: 'code_execution',
  action: 'code:read',
  sideEffects: true,
  locality: 'Local',
};

const GUIDE = [
  'How to call tools: your only tool is `invoke`. Its argument `code` is the body of an async JavaScript function without Node.js or browser APIs.',
  '- `await ctx.manager.invoke(name, arguments)` calls a tool by its name and returns its output. It throws an Error with `code` and `message` when the call fails; catch it where you can continue. Use Promise.all for calls that do not depend on each other, and await every call.',
  '- `return value` shows you a JSON value, and so does `console.log`. `throw` is a failure.',
  '- `ctx.manager.finish(value)` ends your work: the value is your answer to the user. Without it, answer in plain text when you are done.',
  '- `memory` is an object that lives as long as this session. Keep JSON in it; functions are lost when the session moves.',
  '- setTimeout and the other timers work while the code waits.',
];

/** What the model of an agent in code mode gets: one tool, and the tools of the agent as text. Their descriptions are data. */
export function codeOffer(
  spec: AgentSpec,
  system: string,
  order: ToolOrder,
  visible: readonly ToolDescriptor[],
): ProviderOffer {
  const finish = visible.find(({ name }) => name === FINISH_TOOL_NAME);
  const returns =
    finish === undefined
      ? []
      : [`- ctx.manager.finish takes an object that matches this JSON Schema: ${JSON.stringify(finish.inputSchema)}`];
  const tools = visible.filter((tool) => tool !== finish);
  const shown = order.sort(documentedTools(spec, tools)).map((tool) => JSON.stringify(parametersOf(tool)));
  const lists = isDiscovery(spec)
    ? ['Some of the tools, one JSON object per line; list_tools and load_tool show the others:', ...shown]
    : ['The tools, one JSON object per line:', ...shown];
  const prompt = [system, '', ...GUIDE, ...returns, '', ...lists].join('\n');
  return { prompt, tools: [INVOKE_TOOL], programTools: [...visible] };
}

/** With a bare `*` among the grants, the prompt lists only the tools that a grant names, and the model explores the others. */
function isDiscovery({ grants }: Pick<AgentSpec, 'grants'>): boolean {
  return grants?.tools?.includes('*') === true;
}

function documentedTools(spec: AgentSpec, visible: readonly ToolDescriptor[]): ToolDescriptor[] {
  const explorers = [LIST_TOOLS_NAME, LOAD_TOOL_NAME];
  if (!isDiscovery(spec)) return visible.filter(({ name }) => !explorers.includes(name));
  const named = new Set([...(spec.grants?.tools ?? []), ...explorers]);
  return visible.filter(({ name }) => named.has(name));
}

function parametersOf({ name, description, inputSchema }: ToolSpec) {
  return { name, description, parameters: inputSchema };
}
