import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import { isSharedKey } from '../../policy/shared-keys.ts';
import type { CallerContext } from '../../tools/contract.ts';
import type { Memory } from '../ports.ts';

export const MEMORY_TOOLS = {
  get: 'memory_get',
  set: 'memory_set',
  delete: 'memory_delete',
  list: 'memory_list',
  search: 'memory_search',
} as const;

export interface MemoryToolDeps {
  memory: Memory;
  /** Evaluates the agent's current policy for one key. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
  /** Called when a session reads shared keys, which other agents wrote, or what a tainted session wrote: it has untrusted content then. */
  onUntrusted(caller: CallerContext): void;
  /** Whether the session has untrusted content, which its values then carry. */
  isTainted(caller: CallerContext): boolean;
}

/** Whether reading the key taints a session. Own shared keys do: another agent may have replaced their values. */
export function isUntrustedEntry({ key, tainted }: { key: string; tainted: boolean }): boolean {
  return tainted || isSharedKey(key);
}

export const KEY = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  description: 'Dotted, such as "self.notes.today". Keys below "shared" belong to all agents of the namespace',
};
export function memoryRequest(key: string, access: 'read' | 'write'): PolicyRequest {
  return { kind: 'Memory', key, access };
}

export function keyOf(input: Json): string {
  const key = member(input, 'key');
  if (typeof key !== 'string') throw new TemperError('TEMPER_TOOL_INPUT_INVALID', '"key" must be a text');
  return key;
}

export function assertAllowed(deps: MemoryToolDeps, caller: CallerContext, request: PolicyRequest): void {
  const { effect, reason, rule } = deps.decide(caller, request);
  if (effect !== 'Allow') throw new TemperError('TEMPER_POLICY_DENIED', reason, { details: { rule } });
}
