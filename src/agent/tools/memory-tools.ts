import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import type { CallerContext, Tool } from '../../tools/contract.ts';
import type { Memory } from '../ports.ts';

export interface MemoryToolDeps {
  memory: Memory;
  /** Evaluates the agent's current policy for one key. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
}

const KEY = { type: 'string', minLength: 1, maxLength: 256, description: 'Dotted, such as "self.notes.today"' };
const MAX_HITS = 20;
/** Of a search without a limit. */
export const DEFAULT_HITS = 5;

export const MEMORY_TOOLS = { get: 'memory_get', set: 'memory_set', search: 'memory_search' } as const;

/** `memory_get`, `memory_set`, `memory_search`: access to the memory of an agent, which outlives its sessions. */
export function createMemoryTools(deps: MemoryToolDeps): Tool[] {
  return [getTool(deps), setTool(deps), searchTool(deps)];
}

function getTool(deps: MemoryToolDeps): Tool {
  return {
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
    async call(input, context) {
      const key = keyOf(input);
      assertAllowed(deps, context, memoryRequest(key, 'read'));
      const value = await deps.memory.get(key);
      return { found: value !== undefined, value: value ?? null };
    },
  };
}

function setTool(deps: MemoryToolDeps): Tool {
  return {
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
    async call(input, context) {
      const key = keyOf(input);
      assertAllowed(deps, context, memoryRequest(key, 'write'));
      await deps.memory.set(key, member(input, 'value') ?? null);
      return { key };
    },
  };
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
      return { hits: hits.map(({ key, value }) => ({ key, value })) };
    },
  };
}

/** The policy request of a call of `memory_get` or `memory_set`; a search asks for each key that it finds. */
export function memoryCallRequest(tool: string, input: Json): PolicyRequest | undefined {
  if (tool !== 'memory_get' && tool !== 'memory_set') return undefined;
  return memoryRequest(keyOf(input), tool === 'memory_get' ? 'read' : 'write');
}

function memoryRequest(key: string, access: 'read' | 'write'): PolicyRequest {
  return { kind: 'Memory', key, access };
}

function keyOf(input: Json): string {
  const key = member(input, 'key');
  if (typeof key !== 'string') throw new TemperError('TEMPER_TOOL_INPUT_INVALID', '"key" must be a text');
  return key;
}

function assertAllowed(deps: MemoryToolDeps, caller: CallerContext, request: PolicyRequest): void {
  const { effect, reason, rule } = deps.decide(caller, request);
  if (effect !== 'Allow') throw new TemperError('TEMPER_POLICY_DENIED', reason, { details: { rule } });
}
