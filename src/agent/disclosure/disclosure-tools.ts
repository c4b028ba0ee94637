import { TemperError } from '../../lib/errors.ts';
import { type Json, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { jsonSize } from '../../models/charge/request-size.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../tools/contract.ts';
import { LIST_TOOLS_NAME, LOAD_TOOL_NAME } from '../code/list-tools.ts';
import { definitionTokens } from './loaded-tools.ts';
import { ALWAYS_OFFERED, byName, categoryOf, LOAD_RESOURCE_NAME } from './names.ts';
import type { DisclosureSettings } from './settings.ts';
import { costTier, guideOf, resourcesOf } from './tool-guide.ts';
import type { ToolSearch } from './tool-search.ts';

export interface DisclosureToolDeps {
  settings: DisclosureSettings;
  search: ToolSearch;
  /** The tools that the policy lists to the caller. */
  visible: (caller: CallerContext) => readonly ToolDescriptor[];
  decide: (caller: CallerContext, request: PolicyRequest) => Decision;
}

const BASE = { category: 'other', action: 'code:read', sideEffects: false, locality: 'Local' } as const;
const MAX_DESCRIPTION = 120;
const TOOL_NAME = { type: 'string', minLength: 1, maxLength: 128 };

const LIST_TOOLS: ToolDescriptor = {
  ...BASE,
  name: LIST_TOOLS_NAME,
  description: 'Lists your tools by name, or the best first for a query.',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', maxLength: 400 },
      category: { type: 'string', maxLength: 64 },
      offset: { type: 'integer', minimum: 0 },
    },
    additionalProperties: false,
  },
};

const LOAD_TOOL: ToolDescriptor = {
  ...BASE,
  name: LOAD_TOOL_NAME,
  description: 'Adds a tool to those that you can call.',
  inputSchema: {
    type: 'object',
    properties: { name: TOOL_NAME },
    required: ['name'],
    additionalProperties: false,
  },
};

const LOAD_RESOURCE: ToolDescriptor = {
  ...BASE,
  name: LOAD_RESOURCE_NAME,
  description: 'Returns a resource of a tool that load_tool names.',
  inputSchema: {
    type: 'object',
    properties: { name: TOOL_NAME, resource: { type: 'string', maxLength: 64 } },
    required: ['name', 'resource'],
    additionalProperties: false,
  },
};

export const DISCLOSURE_TOOL_DESCRIPTORS: readonly ToolDescriptor[] = [LIST_TOOLS, LOAD_TOOL, LOAD_RESOURCE];

/** The tools with which a model gets to know its tools. They show what the policy lists to the caller. */
export function disclosureTools(deps: DisclosureToolDeps): Tool[] {
  return [
    { descriptor: LIST_TOOLS, call: async (input, caller) => list(deps, othersOf(deps, caller), input) },
    { descriptor: LOAD_TOOL, call: async (input, caller) => load(deps, caller, input) },
    {
      descriptor: LOAD_RESOURCE,
      call: async (input, caller) => resource(findTool(deps, caller, input), textAt(input, ['resource'])),
    },
  ];
}

function othersOf({ visible }: DisclosureToolDeps, caller: CallerContext): ToolDescriptor[] {
  return visible(caller).filter(({ name }) => !ALWAYS_OFFERED.has(name));
}

function list({ search, settings }: DisclosureToolDeps, tools: readonly ToolDescriptor[], input: Json): Json {
  const query = textAt(input, ['query']);
  const category = textAt(input, ['category']).toLowerCase();
  const start = member(input, 'offset');
  const offset = typeof start === 'number' ? start : 0;
  const chosen = category === '' ? tools : tools.filter((tool) => categoryOf(tool) === category);
  const ordered = query === '' ? chosen.toSorted(byName) : search.rank(query, chosen).map(({ tool }) => tool);
  const lines = ordered.slice(offset).map(lineOf);
  const shown = firstWithin(lines, settings.indexTokens);
  return { tools: shown, more: lines.length - shown.length };
}

function load(deps: DisclosureToolDeps, caller: CallerContext, input: Json): Json {
  const tool = findTool(deps, caller, input);
  const { bodyTokens } = deps.settings;
  const tokens = definitionTokens(tool);
  if (tokens > bodyTokens) {
    const message = `the definition of "${tool.name}" has ${tokens} tokens, above spec.disclosure.bodyTokens ${bodyTokens}; raise it, or call the tool by its name`;
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
  }
  return { loaded: tool.name, ...guideOf(tool, deps.decide(caller, toolRequest(tool))) };
}

function resource(tool: ToolDescriptor, id: string): Json {
  const resources = resourcesOf(tool);
  const found = member(resources, id);
  if (found !== undefined) return { name: tool.name, resource: id, content: found };
  const ids = Object.keys(resources).join(', ');
  const message = `"${tool.name}" has no resource "${printable(id, 64)}"; it has ${ids === '' ? 'none' : ids}`;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}

function findTool(deps: DisclosureToolDeps, caller: CallerContext, input: Json): ToolDescriptor {
  const name = textAt(input, ['name']);
  const tool = othersOf(deps, caller).find((candidate) => candidate.name === name);
  if (tool !== undefined) return tool;
  const message = `no tool is named "${printable(name, 80)}"; list_tools lists their names`;
  throw new TemperError('TEMPER_TOOL_NOT_FOUND', message);
}

function lineOf(tool: ToolDescriptor) {
  const { name, description } = tool;
  return {
    name,
    description: printable(description, MAX_DESCRIPTION),
    category: categoryOf(tool),
    cost: costTier(tool),
  };
}

/** The lines up to the first one that does not fit, so that the next list begins with it. */
function firstWithin<T extends Json>(lines: readonly T[], tokens: number): T[] {
  let remaining = tokens;
  const end = lines.findIndex((line) => {
    remaining -= jsonSize(line).tokens;
    return remaining < 0;
  });
  return end === -1 ? [...lines] : lines.slice(0, end);
}
