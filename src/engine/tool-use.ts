import type { Clock } from '../lib/clock.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { CompletedCall } from '../tools/invoker.ts';

/** The use that a finished call was; nothing when it was none. */
export function useOf(
  { tool, input, result, caller }: CompletedCall,
  evidence: ToolUse['evidence'],
  clock: Clock,
): ToolUse | undefined {
  // What a forge calls to test a chain is no use: or an agent could forge its way to a record.
  if (tool.forged === undefined || caller.stack.includes('forge_tool')) return undefined;
  const { digest } = tool.forged;
  const { agent, namespace, session, rootMessage } = caller;
  const { ok: succeeded, milliseconds } = result;
  const time = clock.now().toISOString();
  return { digest, evidence, agent, namespace, session, rootMessage, input, succeeded, milliseconds, time };
}
