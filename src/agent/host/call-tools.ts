import type { CallOptions } from '../../lib/call-options.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { originOfTool } from '../history/origins.ts';
import { isRepeatable } from '../history/repeatable.ts';
import type { MessageHostDeps, MessageState } from './message-state.ts';
import { runToolCalls, type StoredResult } from './tool-calls.ts';

/** Why a message ends without further tool calls. */
export interface Limit {
  code: ErrorCode;
  reason: string;
}

/** What became of the calls of one answer. At most one of `parked`, `reply` and `limit` is present. */
export interface CallsResult {
  /** What the session got, without entries that no model sees. */
  items: ModelMessage[];
  parked?: readonly string[];
  reply?: string;
  limit?: Limit;
}

/** The rule in a tool failure when the loop guard ends the processing of the message. */
const LOOP_BREAK_RULE = 'loop-guard.break';

/** Makes the calls of one answer, within the steps of the message. `op.key` is the key of the answer. */
export async function callTools(
  deps: MessageHostDeps,
  state: MessageState,
  calls: readonly ToolCall[],
  visible: readonly ToolDescriptor[],
  op: CallOptions,
): Promise<CallsResult> {
  const { caller, limits, events, historyWriter } = state;
  const allowed = stepsLeft(state);
  state.toolCalls += Math.min(allowed, calls.length);
  const storeResult = async ({ message, tool, isCalled, isApproved }: StoredResult): Promise<void> => {
    const origin = originOfTool(tool);
    if (isCalled) {
      if (deps.isUntrusted(origin)) deps.taint.mark(caller.session, origin);
      deps.taint.read(caller.session, origin);
    }
    const deferrable = !isCalled || (isRepeatable(tool) && !isApproved);
    await historyWriter.write([{ ...message, origin }], { ...deps.taint.marks(caller.session), deferrable });
  };
  const { outputCharacters } = limits;
  const { results, parked } = await runToolCalls(
    calls,
    allowed,
    { invoker: deps.invoker, caller, visible, outputCharacters, events, storeResult },
    op,
  );
  const items = results.map(({ message }) => message);
  if (parked.length > 0) return { items, parked: [...new Set(parked.map((call) => call.parked))] };
  if (calls.length > allowed) return { items, limit: stepLimit(limits.steps) };
  const loopBreak = results.find(({ failure }) => failure?.rule === LOOP_BREAK_RULE)?.failure;
  return loopBreak === undefined ? { items } : { items, limit: { code: loopBreak.code, reason: loopBreak.message } };
}

/** The tool calls that the message may still make. */
export function stepsLeft({ isConcluding, limits, toolCalls }: MessageState): number {
  return isConcluding ? 0 : Math.max(0, limits.steps - toolCalls);
}

export function stepLimit(steps: number): Limit {
  return { code: 'TEMPER_STEP_LIMIT', reason: `all ${steps} tool calls for this message are used` };
}
