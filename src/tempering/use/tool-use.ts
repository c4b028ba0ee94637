import { tryDigestOf } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { isForgeTestCall } from '../../tools/forge-test-call.ts';
import { isHookCall } from '../../tools/hooks/call-hooks.ts';
import type { CompletedCall } from '../../tools/invoker.ts';
import type { Evidence, ToolUse } from '../types.ts';
import { toUseRecording } from './use-recording.ts';

/** Converts a finished call into a tool use; undefined when the tool is not forged, or the agent did not choose the call: in a forge, and for a hook. */
export function toToolUse(call: CompletedCall, evidence: Evidence, clock: Clock): ToolUse | undefined {
  const { tool, input, result, caller, recording } = call;
  // Calls of a forge that tests a composed tool do not count; otherwise an agent could inflate use records by forging.
  if (tool.forged === undefined || isForgeTestCall(caller) || isHookCall(caller)) return undefined;
  const { digest } = tool.forged;
  const { agent, namespace, session, rootMessage } = caller;
  const { ok: succeeded, milliseconds } = result;
  const time = clock.now().toISOString();
  const use = { digest, evidence, agent, namespace, session, rootMessage, input, succeeded, milliseconds, time };
  const output = result.ok ? tryDigestOf(result.output) : undefined;
  return {
    ...use,
    ...(output === undefined ? {} : { output }),
    ...(recording === undefined ? {} : { recording: toUseRecording(recording, evidence) }),
  };
}
