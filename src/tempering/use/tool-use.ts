import type { Clock } from '../../lib/clock.ts';
import type { ToolUse } from '../types.ts';
import { isForgeTestCall } from '../../tools/forge-test-call.ts';
import type { CompletedCall } from '../../tools/invoker.ts';

/** Converts a finished call into a tool use; undefined when the tool is not forged or the call is part of a forge. */
export function toToolUse(
  { tool, input, result, caller }: CompletedCall,
  evidence: ToolUse['evidence'],
  clock: Clock,
): ToolUse | undefined {
  // Calls of a forge that tests a composed tool do not count; otherwise an agent could inflate use records by forging.
  if (tool.forged === undefined || isForgeTestCall(caller)) return undefined;
  const { digest } = tool.forged;
  const { agent, namespace, session, rootMessage } = caller;
  const { ok: succeeded, milliseconds } = result;
  const time = clock.now().toISOString();
  return { digest, evidence, agent, namespace, session, rootMessage, input, succeeded, milliseconds, time };
}
