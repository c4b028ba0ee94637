import { printable } from '../../lib/printable.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import type { CallerContext, NestedCall, Tool, ToolResult } from '../contract.ts';
import type { EventSink } from '../events.ts';
import { isForgeTestCall } from '../forge-test-call.ts';
import { isHookCall } from '../hooks/call-hooks.ts';
import { resultSummary } from './result-summary.ts';

/** A call with its result. */
export interface EndedCall {
  /** As its caller gets it. */
  result: ToolResult;
  /** As hooks and events show it: scanned. */
  shown: ToolResult;
  /** It has content of a host, or may have. */
  isFromHost: boolean;
}

/** Calls a tool with every check. Throws only when the audit record cannot be written. */
export type RunToEnd = (name: string, input: Json, caller: CallerContext, op: CallOptions) => Promise<EndedCall>;

/**
 * Whether a tool makes this call, and gets the result for its own work. The calls of the model of a nested agent stand below `agent_run`, and
 * its results leave the tools like those of any other model.
 */
export function isCallOfTool({ origin, stack }: Pick<CallerContext, 'origin' | 'stack'>): boolean {
  return origin === 'Compose' || origin === 'ForgeTest' || (origin === 'Hook' && stack.length > 0);
}

/** What the results of the calls below one call mean for its own result: a tool passes on what it gets. */
export class NestedResults {
  #areFromHost = false;
  /** Calls a tool below the call. */
  readonly runToEnd: RunToEnd;

  constructor(runToEnd: RunToEnd) {
    this.runToEnd = async (...call) => {
      const ended = await runToEnd(...call);
      if (ended.isFromHost) this.#areFromHost = true;
      return ended;
    };
  }

  /** Whether one of them so far has content of a host. */
  get areFromHost(): boolean {
    return this.#areFromHost;
  }
}

/** The caller of the tools that this tool calls. */
export function nestedCaller(tool: Pick<Tool, 'descriptor' | 'nestedOrigin'>, caller: CallerContext): CallerContext {
  const { name, forged } = tool.descriptor;
  const isBelow = isForgeTestCall(caller) || isHookCall(caller);
  const origin = isBelow ? caller.origin : (tool.nestedOrigin ?? 'Compose');
  return { ...caller, stack: [...caller.stack, forged?.digest ?? name], origin };
}

/** Calls tools for a running one and reports each call. The gates of a forge report its tests. */
export function nestedCalls(runToEnd: RunToEnd, caller: CallerContext, events: EventSink): NestedCall {
  if (isForgeTestCall(caller)) return async (tool, input, op) => (await runToEnd(tool, input, caller, op)).result;
  return async (tool, input, op) => {
    const { origin, stack } = caller;
    const call = { id: op.key, origin, depth: stack.length, tool: toolName(tool), ...runIds(caller) };
    events({ type: 'tool-call', ...call, input });
    const { result, shown } = await runToEnd(tool, input, caller, op);
    events({ type: 'tool-result', ...call, ...outcomeOf(shown) });
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
