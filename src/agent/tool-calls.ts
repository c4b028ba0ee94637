import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { type Json, parseUntrustedJson } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { ModelMessage, ToolCall } from '../models/port.ts';
import type { CallerContext, Invoker, ToolDescriptor, ToolFailure, ToolResult } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import { untilAborted } from './abort.ts';
import { resultSummary, resultText } from './results.ts';
import { bringsUntrustedContent } from './taint.ts';

export interface ToolCallDeps {
  invoker: Invoker;
  caller: CallerContext;
  /** The tools the model was shown. */
  visible: readonly ToolDescriptor[];
  outputCharacters: number;
  events: EventSink;
  /** Makes one result durable. Called as each call ends, before it is reported. */
  keep(message: ModelMessage, tainted: boolean): Promise<void>;
}

export interface ToolCallsOutcome {
  /** One a call, in order of the calls. */
  results: { message: ModelMessage; failure?: ToolFailure }[];
}

/**
 * Runs the calls of one answer side by side; only the first `allowed` reach the invoker. What goes wrong with one call is
 * its result. What the invoker throws is a failure of the engine, not of the tool: all calls are waited for and their
 * results kept, then the first is thrown, the others in its cause.
 */
export async function runToolCalls(
  calls: readonly ToolCall[],
  allowed: number,
  deps: ToolCallDeps,
  op: Op,
): Promise<ToolCallsOutcome> {
  const settled = await Promise.allSettled(
    calls.map((call, index) => runOne(call, index < allowed, deps, { ...op, key: `${op.key}/${call.id}` })),
  );
  const fatal = settled.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  if (fatal.length > 0) throw worst(fatal);
  return { results: settled.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : [])) };
}

async function runOne(
  call: ToolCall,
  allowed: boolean,
  deps: ToolCallDeps,
  op: Op,
): Promise<{ message: ModelMessage; failure?: ToolFailure }> {
  const result = allowed ? await invoke(call, deps, op) : failed(call, STEP_LIMIT);
  const message: ModelMessage = {
    role: 'tool',
    toolCallId: call.id,
    name: call.name,
    text: resultText(result, deps.outputCharacters),
    isError: !result.ok,
  };
  const descriptor = deps.visible.find((tool) => tool.name === call.name);
  await deps.keep(message, allowed && descriptor !== undefined && bringsUntrustedContent(descriptor));
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

async function invoke(call: ToolCall, deps: ToolCallDeps, op: Op): Promise<ToolResult> {
  let input: Json;
  try {
    input = call.arguments.trim() === '' ? {} : parseUntrustedJson(call.arguments);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    deps.events({ type: 'tool-call', id: call.id, tool: call.name, input: null });
    return failed(call, malformed(call, error));
  }
  deps.events({ type: 'tool-call', id: call.id, tool: call.name, input });
  return untilAborted(deps.invoker.invoke(call.name, input, deps.caller, op), op.signal, `the call of "${call.name}"`);
}

function malformed(call: ToolCall, error: SyntaxError): ToolFailure {
  return {
    code: 'TEMPER_TOOL_INPUT_INVALID',
    message: `the arguments of "${printable(call.name, 80)}" are not JSON (${printable(messageOf(error), 200)}); they end with ${JSON.stringify(call.arguments.slice(-60))}. Send one complete JSON object.`,
  };
}

function failed(call: ToolCall, error: ToolFailure): ToolResult {
  return { ok: false, tool: call.name, error, milliseconds: 0 };
}

function worst(fatal: unknown[]): unknown {
  const [first] = fatal;
  if (fatal.length === 1) return first;
  const code = isTemperError(first) ? first.code : 'TEMPER_INTERNAL';
  return new TemperError(code, messageOf(first), { cause: new AggregateError(fatal, `${fatal.length} calls failed`) });
}
