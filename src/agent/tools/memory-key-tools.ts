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

const MAX_KEYS = 1_000;
/** Of a list without a limit. */
export const DEFAULT_KEYS = 100;

/** `memory_delete`: the right to write a key is the right to delete it. */
export function deleteTool(deps: MemoryToolDeps): Tool {
  return checkedTool({
    descriptor: {
      name: MEMORY_TOOLS.delete,
      description: 'Delete what was kept under a key. Gives {key, deleted}; deleted is false when there was nothing.',
      inputSchema: { type: 'object', properties: { key: KEY }, required: ['key'], additionalProperties: false },
      outputSchema: {
        type: 'object',
        properties: { key: { type: 'string' }, deleted: { type: 'boolean' } },
        required: ['key', 'deleted'],
        additionalProperties: false,
      },
      category: 'memory',
      action: 'code:write',
      sideEffects: true,
      locality: 'Local',
    },
    check: (input, caller) => assertAllowed(deps, caller, memoryRequest(keyOf(input), 'write')),
    async call(input) {
      const key = keyOf(input);
      return { key, deleted: await deps.memory.delete(key) };
    },
  });
}

/** `memory_list`: the keys that the agent may read. */
export function listTool(deps: MemoryToolDeps): Tool {
  return {
    descriptor: {
      name: MEMORY_TOOLS.list,
      description:
        'List the keys of what was kept, sorted. Gives {keys, complete}; complete is false when there are more.',
      inputSchema: {
        type: 'object',
        properties: {
          prefix: { type: 'string', maxLength: 256, description: 'Start of the keys, such as "self.notes."' },
          limit: { type: 'integer', minimum: 1, maximum: MAX_KEYS },
        },
        additionalProperties: false,
      },
      outputSchema: {
        type: 'object',
        properties: { keys: { type: 'array', items: { type: 'string' } }, complete: { type: 'boolean' } },
        required: ['keys', 'complete'],
        additionalProperties: false,
      },
      category: 'memory',
      action: 'memory:read',
      sideEffects: false,
      locality: 'Local',
    },
    async call(input, context) {
      const prefix = member(input, 'prefix');
      const limit = member(input, 'limit');
      const isReadable = (key: string) => deps.decide(context, memoryRequest(key, 'read')).effect === 'Allow';
      const count = typeof limit === 'number' ? limit : DEFAULT_KEYS;
      const { keys, complete, tainted } = await deps.memory.list(
        typeof prefix === 'string' ? prefix : '',
        count,
        isReadable,
      );
      if (keys.some((key) => isUntrustedEntry({ key, tainted }))) deps.onUntrusted(context);
      return { keys, complete };
    },
  };
}
