import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import type { CallerContext, ToolResult } from '../contract.ts';

/** A call that the hooks of the agent see. */
interface HookedCall {
  tool: string;
  input: Json;
  caller: CallerContext;
}

/** The hooks of the agent at the calls of its tools. Calls of a hook and tests of a forge have none. */
export interface CallHooks {
  /** After the policy and the loop guard, before a reservation and an approval. Throws TEMPER_HOOK_DENIED when a hook refuses the call. */
  beforeCall(call: HookedCall, op: CallOptions): Promise<void>;
  /** Throws TEMPER_HOOK_FAILED when a hook that must not fail has failed. */
  afterCall(call: HookedCall, result: ToolResult, op: CallOptions): Promise<void>;
}

/**
 * Whether a hook makes this call, also through other tools. Such a call runs no hooks, has no loop guard, because equal events repeat it,
 * and is no evidence for the tool, because the agent did not choose it. Policy and quotas hold for it.
 */
export function isHookCall({ origin }: Pick<CallerContext, 'origin'>): boolean {
  return origin === 'Hook';
}
