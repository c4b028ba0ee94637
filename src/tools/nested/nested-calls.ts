import { printable } from '../../lib/printable.ts';
import type { CallerContext, Invoker, NestedCall, Tool, ToolResult } from '../contract.ts';
import type { EventSink } from '../events.ts';
import { isForgeTestCall } from '../forge-test-call.ts';
import { isHookCall } from '../hooks/call-hooks.ts';
import { resultSummary } from './result-summary.ts';

/** The caller of the tools that this tool calls. */
export function nestedCaller(tool: Pick<Tool, 'descriptor' | 'nestedOrigin'>, caller: CallerContext): CallerContext {
  const { name, forged } = tool.descriptor;
  const isBelow = isForgeTestCall(caller) || isHookCall(caller);
  const origin = isBelow ? caller.origin : (tool.nestedOrigin ?? 'Compose');
  return { ...caller, stack: [...caller.stack, forged?.digest ?? name], origin };
}

/** Calls tools for a running one and reports each call. The gates of a forge report its tests. */
export function nestedCalls(invoker: Invoker, caller: CallerContext, events: EventSink): NestedCall {
  if (isForgeTestCall(caller)) return (tool, input, op) => invoker.invoke(tool, input, caller, op);
  return async (tool, input, op) => {
    const { origin, stack } = caller;
    const call = { id: op.key, origin, depth: stack.length, tool: toolName(tool), ...runIds(caller) };
    events({ type: 'tool-call', ...call, input });
    const result = await invoker.invoke(tool, input, caller, op);
    events({ type: 'tool-result', ...call, ...outcomeOf(result) });
    return result;
  };
}

/** The members of an event of a call that a run of `agent_run` makes. */
export function runIds({ run }: Pick<CallerContext, 'run'>): { contextId?: string; ancestorIds?: string[] } {
  return run === undefined ? {} : { contextId: run.id, ancestorIds: [...run.ancestors] };
}

/** The name without a required digest. */
function toolName(reference: string): string {
  return printable(reference.split('@', 1)[0] ?? '', 80);
}

function outcomeOf(result: ToolResult) {
  const { ok, milliseconds } = result;
  return { ok, ...(result.ok ? {} : { code: result.error.code }), summary: resultSummary(result), milliseconds };
}
