import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type {
  CallerContext,
  Invoker,
  ParkedCall,
  ToolDescriptor,
  ToolFailure,
  ToolResult,
} from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import { DROP_TOOL_NAME, FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { untilAborted } from '../abort.ts';
import { callKey } from '../session/resume.ts';
import { resultSummary } from '../../tools/nested/result-summary.ts';
import { resultText } from '../history/tool-result-text.ts';

export interface ToolCallDeps {
  invoker: Invoker;
  caller: CallerContext;
  /** The tools in the model request. A tool that this answer forges is not among them. */
  visible: readonly ToolDescriptor[];
  outputCharacters: number;
  events: EventSink;
  /** Stores one result. Called when a call ends, before its result is reported. */
  storeResult(result: StoredResult): Promise<void>;
}

export interface StoredResult {
  message: Extract<ModelMessage, { role: 'tool' }>;
  /** Absent for an unknown tool. */
  tool: ToolDescriptor | undefined;
  /** False for a call beyond the limit. */
  isCalled: boolean;
  /** An approval permitted the call; it does not permit a second one. */
  isApproved: boolean;
}

interface CallResult {
  message: ModelMessage;
  failure?: ToolFailure;
}

export interface ToolCallsOutcome {
  /** One result per call that ended, in the order of the calls. */
  results: CallResult[];
  /** The calls that wait for a decision. They have no result, and neither have the calls that wait for one of them. */
  parked: ParkedCall[];
}

/**
 * Runs the calls of one answer concurrently; only the first `allowed` calls reach the invoker. The calls after a call of
 * `forge_tool` wait for it, so that they can call the tool that it makes, and do not start while it is parked. A call of `drop_tool` also
 * waits for the calls before it, which may call the tool. A failure of a tool is the result of its call. An exception of the invoker is a failure of the engine: the concurrent calls are awaited and their results stored, the waiting
 * ones do not start, then the first exception is thrown, with the others in its cause.
 */
export async function runToolCalls(
  calls: readonly ToolCall[],
  allowed: number,
  deps: ToolCallDeps,
  op: CallOptions,
): Promise<ToolCallsOutcome> {
  const outcome: ToolCallsOutcome = { results: [], parked: [] };
  for (const batch of concurrentBatches(calls)) {
    const settled = await Promise.allSettled(
      batch.map(({ call, index }) => runCall(call, index < allowed, deps, { ...op, key: callKey(op.key, call.id) })),
    );
    const errors = settled.flatMap((call) => (call.status === 'rejected' ? [call.reason as unknown] : []));
    if (errors.length > 0) throw combineErrors(errors);
    const ended = settled.flatMap((call) => (call.status === 'fulfilled' ? [call.value] : []));
    for (const call of ended) {
      if ('parked' in call) outcome.parked.push(call);
      else outcome.results.push(call);
    }
    if (outcome.parked.some(({ tool }) => changesTools(tool))) break;
  }
  return outcome;
}

function changesTools(tool: string): boolean {
  return tool === FORGE_TOOL_NAME || tool === DROP_TOOL_NAME;
}

/** The calls in their order, split after each call that changes the tools of the session, and before each that removes one. */
function concurrentBatches(calls: readonly ToolCall[]): { call: ToolCall; index: number }[][] {
  const batches: { call: ToolCall; index: number }[][] = [[]];
  for (const [index, call] of calls.entries()) {
    if (call.name === DROP_TOOL_NAME) batches.push([]);
    batches.at(-1)?.push({ call, index });
    if (changesTools(call.name)) batches.push([]);
  }
  return batches;
}

async function runCall(
  call: ToolCall,
  allowed: boolean,
  deps: ToolCallDeps,
  op: CallOptions,
): Promise<CallResult | ParkedCall> {
  const result = allowed ? await invoke(call, deps, op) : failedResult(call, STEP_LIMIT);
  if ('parked' in result) return result;
  const message: StoredResult['message'] = {
    role: 'tool',
    toolCallId: call.id,
    name: call.name,
    text: resultText(result, deps.outputCharacters),
    isError: !result.ok,
  };
  const isCalled = (tool: ToolDescriptor): boolean => tool.name === call.name;
  const descriptor = deps.visible.find(isCalled) ?? deps.invoker.visible(deps.caller).find(isCalled);
  const isApproved = result.approval !== undefined;
  await deps.storeResult({ message, tool: descriptor, isCalled: allowed, isApproved });
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

async function invoke(call: ToolCall, deps: ToolCallDeps, op: CallOptions): Promise<ToolResult | ParkedCall> {
  let input: Json;
  try {
    input = call.arguments.trim() === '' ? {} : parseUntrustedJson(call.arguments);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    deps.events({ type: 'tool-call', id: call.id, tool: call.name, input: null });
    return failedResult(call, malformedArguments(call, error));
  }
  deps.events({ type: 'tool-call', id: call.id, tool: call.name, input });
  const result = deps.invoker.invokeOrPark(call.name, input, deps.caller, op);
  return untilAborted(result, op.signal, `the call of "${call.name}"`);
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
