import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';

export const LIST_TOOLS_NAME = 'list_tools';
export const LOAD_TOOL_NAME = 'load_tool';

const MAX_LISTED = 200;
const MAX_SUMMARY = 200;

const BASE = { category: 'other', action: 'code:read', sideEffects: false, locality: 'Local' } as const;

const LIST_TOOLS: ToolDescriptor = {
  ...BASE,
  name: LIST_TOOLS_NAME,
  description:
    'Lists the tools that you can call, with a short description. `query` keeps those with this text in name or description.',
  inputSchema: {
    type: 'object',
    properties: { query: { type: 'string', maxLength: 200 } },
    additionalProperties: false,
  },
};

const LOAD_TOOL: ToolDescriptor = {
  ...BASE,
  name: LOAD_TOOL_NAME,
  description: 'Returns the full description of one tool, with the schemas of its arguments and its output.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', minLength: 1, maxLength: 128 } },
    required: ['name'],
    additionalProperties: false,
  },
};

/** The tools with which code explores the tools of its agent. They show what the policy lists to the caller. */
export function listTools(visible: (caller: CallerContext) => readonly ToolDescriptor[]): Tool[] {
  return [
    { descriptor: LIST_TOOLS, call: async (input, caller) => list(visible(caller), input) },
    { descriptor: LOAD_TOOL, call: async (input, caller) => load(visible(caller), input) },
  ];
}

function list(visible: readonly ToolDescriptor[], input: Json): Json {
  const query = textOf(input, 'query').toLowerCase();
  const found = visible.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(query));
  const tools = found.slice(0, MAX_LISTED).map(({ name, description }) => ({
    name,
    description: description.slice(0, MAX_SUMMARY),
  }));
  return { tools, more: found.length - tools.length };
}

function load(visible: readonly ToolDescriptor[], input: Json): Json {
  const name = textOf(input, 'name');
  const tool = visible.find((candidate) => candidate.name === name);
  if (tool === undefined) {
    const message = `no tool is named "${printable(name, 80)}"; list_tools lists their names`;
    throw new TemperError('TEMPER_TOOL_NOT_FOUND', message);
  }
  const { description, inputSchema, outputSchema } = tool;
  return {
    name,
    description,
    parameters: inputSchema,
    ...(outputSchema === undefined ? {} : { output: outputSchema }),
  };
}

function textOf(input: Json, key: string): string {
  const value = member(input, key);
  return typeof value === 'string' ? value : '';
}
