import { TemperError } from '../lib/errors.ts';
import { type Json, member } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import { checkedTool } from '../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../tools/contract.ts';
import { CAPABILITY_KINDS } from './entry.ts';
import type { Discovery, DiscoveryQuery } from './port.ts';

/** Stands for every kind, as an absent kind does. */
const ALL_KINDS = 'all';

/** This tool needs no grant to be listed: it shows only capabilities that the agent may use anyway. */
export const DISCOVER_TOOL: ToolDescriptor = {
  name: 'discover_capabilities',
  description: `Find tools and skills by what they do. Kinds: ${[...CAPABILITY_KINDS, ALL_KINDS].join(', ')}.`,
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', minLength: 1, maxLength: 400 },
      kind: { type: 'string', maxLength: 20 },
      category: { type: 'string', maxLength: 64 },
    },
    required: ['query'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { capabilities: { type: 'array', items: { type: 'object' } }, more: { type: 'integer' } },
    required: ['capabilities', 'more'],
    additionalProperties: false,
  },
  category: 'other',
  action: 'code:read',
  sideEffects: false,
  locality: 'Brokered',
};

export function discoverTool(discovery: Discovery): Tool {
  return checkedTool({
    descriptor: DISCOVER_TOOL,
    check: (input) => void queryOf(input),
    async call(input, context) {
      const { capabilities, more } = await discovery.search(queryOf(input), context, context.op);
      return { capabilities: capabilities.map((found) => ({ ...found })), more };
    },
  });
}

function queryOf(input: Json): DiscoveryQuery {
  const [query, kind, category] = ['query', 'kind', 'category'].map((key) => {
    const value = member(input, key);
    return typeof value === 'string' && value !== '' ? value : undefined;
  });
  return {
    query: query ?? '',
    ...assertKind(kind),
    ...(category === undefined ? {} : { category }),
  };
}

/** The filter for a kind. An unknown kind is refused: it would find nothing, which reads as "there is none". */
export function assertKind(text: string | undefined): { kind?: string } {
  const kind = text?.toLowerCase();
  if (kind === undefined || kind === ALL_KINDS) return {};
  if (CAPABILITY_KINDS.some((known) => known === kind)) return { kind };
  const message = `kind "${printable(kind, 20)}" does not exist; use ${CAPABILITY_KINDS.join(', ')} or ${ALL_KINDS}`;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}
