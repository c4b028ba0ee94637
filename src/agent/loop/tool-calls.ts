import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type { CallerContext, Invoker, ToolDescriptor, ToolFailure, ToolResult } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { untilAborted } from '../abort.ts';
import { resultSummary, resultText } from '../history/tool-result-text.ts';

export interface ToolCallDeps {
  invoker: Invoker;
  caller: CallerContext;
  /** The tools in the model request. A tool that this answer forges is not among them. */
  visible: readonly ToolDescriptor[];
  outputCharacters: number;
  events: EventSink;
  /** Stores one result. Called when a call ends, before its result is reported; `isCalled` is false for a call beyond the limit. */
  storeResult(message: ModelMessage, tool: ToolDescriptor | undefined, isCalled: boolean): Promise<void>;
}

export interface ToolCallsOutcome {
  /** One result per call, in the order of the calls. */
  results: { message: ModelMessage; failure?: ToolFailure }[];
}

/**
 * Runs the calls of one answer concurrently; only the first `allowed` calls reach the invoker. The calls after a call of
 * `forge_tool` wait for it, so that they can call the tool that it makes. A failure of a tool is the result of its call. An
 * exception of the invoker is a failure of the engine: the concurrent calls are awaited and their results stored, the waiting
 * ones do not start, then the first exception is thrown, with the others in its cause.
 */
export async function runToolCalls(
  calls: readonly ToolCall[],
  allowed: number,
  deps: ToolCallDeps,
  op: CallOptions,
): Promise<ToolCallsOutcome> {
  const results: ToolCallsOutcome['results'] = [];
  for (const batch of concurrentBatches(calls)) {
    const settled = await Promise.allSettled(
      batch.map(({ call, index }) => runCall(call, index < allowed, deps, { ...op, key: `${op.key}/${call.id}` })),
    );
    const errors = settled.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
    if (errors.length > 0) throw combineErrors(errors);
    results.push(...settled.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : [])));
  }
  return { results };
}

/** The calls in their order, split after each call of `forge_tool`. */
function concurrentBatches(calls: readonly ToolCall[]): { call: ToolCall; index: number }[][] {
  const batches: { call: ToolCall; index: number }[][] = [[]];
  for (const [index, call] of calls.entries()) {
    batches.at(-1)?.push({ call, index });
    if (call.name === FORGE_TOOL_NAME) batches.push([]);
  }
  return batches;
}

async function runCall(
  call: ToolCall,
  allowed: boolean,
  deps: ToolCallDeps,
  op: CallOptions,
): Promise<{ message: ModelMessage; failure?: ToolFailure }> {
  const result = allowed ? await invoke(call, deps, op) : failedResult(call, STEP_LIMIT);
  const message: ModelMessage = {
    role: 'tool',
    toolCallId: call.id,
    name: call.name,
    text: resultText(result, deps.outputCharacters),
    isError: !result.ok,
  };
  const isCalled = (tool: ToolDescriptor): boolean => tool.name === call.name;
  const descriptor = deps.visible.find(isCalled) ?? deps.invoker.visible(deps.caller).find(isCalled);
  await deps.storeResult(message, descriptor, allowed);
  deps.events({
    type: 'tool-result',
    id: call.id,
    tool: call.name,
    ok: result.ok,
    ...(result.ok ? {} : { code: result.error.code }),
    summary: resultSummary(result),
    milliseconds: result.milliseconds,
  });
  return result.ok ? { message } : { message, failure: result.error };
}

const STEP_LIMIT: ToolFailure = {
  code: 'TEMPER_STEP_LIMIT',
  message: 'all tool calls for this message are used up; answer with what you have',
};

async function invoke(call: ToolCall, deps: ToolCallDeps, op: CallOptions): Promise<ToolResult> {
  let input: Json;
  try {
    input = call.arguments.trim() === '' ? {} : parseUntrustedJson(call.arguments);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    deps.events({ type: 'tool-call', id: call.id, tool: call.name, input: null });
    return failedResult(call, malformedArguments(call, error));
  }
  deps.events({ type: 'tool-call', id: call.id, tool: call.name, input });
  return untilAborted(deps.invoker.invoke(call.name, input, deps.caller, op), op.signal, `the call of "${call.name}"`);
}

function malformedArguments(call: ToolCall, error: SyntaxError): ToolFailure {
  return {
    code: 'TEMPER_TOOL_INPUT_INVALID',
    message: `the arguments of "${printable(call.name, 80)}" are not JSON (${printable(messageOf(error), 200)}); they end with ${JSON.stringify(call.arguments.slice(-60))}. Send one complete JSON object.`,
  };
}

function failedResult(call: ToolCall, error: ToolFailure): ToolResult {
  return { ok: false, tool: call.name, error, milliseconds: 0 };
}

function combineErrors(engineErrors: unknown[]): unknown {
  const [first] = engineErrors;
  if (engineErrors.length === 1) return first;
  const code = isTemperError(first) ? first.code : 'TEMPER_INTERNAL';
  return new TemperError(code, messageOf(first), {
    cause: new AggregateError(engineErrors, `${engineErrors.length} calls failed`),
  });
}
