import { member } from '../../lib/json.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { Tool } from '../../tools/contract.ts';
import {
  assertAllowed,
  isUntrustedEntry,
  KEY,
  keyOf,
  MEMORY_TOOLS,
  memoryRequest,
  type MemoryToolDeps,
} from './memory-access.ts';
import { deleteTool, listTool } from './memory-key-tools.ts';

/** Of one search. */
export const MAX_HITS = 20;
/** Of a search without a limit. */
export const DEFAULT_HITS = 5;

/** The memory tools: access to the memory of an agent, which outlives its sessions. */
export function createMemoryTools(deps: MemoryToolDeps): Tool[] {
  return [getTool(deps), setTool(deps), deleteTool(deps), listTool(deps), searchTool(deps)];
}

function getTool(deps: MemoryToolDeps): Tool {
  return checkedTool({
    descriptor: {
      name: MEMORY_TOOLS.get,
      description: 'Read what was kept under a key. Gives {found, value}.',
      inputSchema: { type: 'object', properties: { key: KEY }, required: ['key'], additionalProperties: false },
      outputSchema: {
        type: 'object',
        properties: { found: { type: 'boolean' }, value: {} },
        required: ['found', 'value'],
        additionalProperties: false,
      },
      category: 'memory',
      action: 'memory:read',
      sideEffects: false,
      locality: 'Local',
    },
    check: (input, caller) => assertAllowed(deps, caller, memoryRequest(keyOf(input), 'read')),
    async call(input, context) {
      const key = keyOf(input);
      const found = await deps.memory.get(key);
      if (found !== undefined && isUntrustedEntry({ key, ...found })) deps.onUntrusted(context);
      return { found: found !== undefined, value: found?.value ?? null };
    },
  });
}

function setTool(deps: MemoryToolDeps): Tool {
  return checkedTool({
    descriptor: {
      name: MEMORY_TOOLS.set,
      description: 'Keep a JSON value under a key, beyond this conversation. Replaces what the key held. Gives {key}.',
      inputSchema: {
        type: 'object',
        properties: { key: KEY, value: { description: 'Any JSON value, at most 65536 characters' } },
        required: ['key', 'value'],
        additionalProperties: false,
      },
      outputSchema: {
        type: 'object',
        properties: { key: { type: 'string' } },
        required: ['key'],
        additionalProperties: false,
      },
      category: 'memory',
      action: 'code:write',
      sideEffects: true,
      locality: 'Local',
    },
    check: (input, caller) => assertAllowed(deps, caller, memoryRequest(keyOf(input), 'write')),
    async call(input, context) {
      const key = keyOf(input);
      await deps.memory.set(key, member(input, 'value') ?? null, { tainted: deps.isTainted(context) });
      return { key };
    },
  });
}

function searchTool(deps: MemoryToolDeps): Tool {
  return {
    descriptor: {
      name: MEMORY_TOOLS.search,
      description: 'Find what was kept, by words of its key or value, best first. Gives {hits: [{key, value}]}.',
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string', minLength: 1, maxLength: 1000 },
          limit: { type: 'integer', minimum: 1, maximum: MAX_HITS },
        },
        required: ['query'],
        additionalProperties: false,
      },
      outputSchema: {
        type: 'object',
        properties: {
          hits: {
            type: 'array',
            items: {
              type: 'object',
              properties: { key: { type: 'string' }, value: {} },
              required: ['key', 'value'],
              additionalProperties: false,
            },
          },
        },
        required: ['hits'],
        additionalProperties: false,
      },
      category: 'memory',
      action: 'memory:read',
      sideEffects: false,
      locality: 'Local',
    },
    async call(input, context) {
      const query = member(input, 'query');
      const limit = member(input, 'limit');
      const isReadable = (key: string) => deps.decide(context, memoryRequest(key, 'read')).effect === 'Allow';
      const count = typeof limit === 'number' ? limit : DEFAULT_HITS;
      const hits = await deps.memory.search(typeof query === 'string' ? query : '', count, isReadable);
      if (hits.some(isUntrustedEntry)) deps.onUntrusted(context);
      return { hits: hits.map(({ key, value }) => ({ key, value })) };
    },
  };
}
