import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { abortedByTimeout, type CallOptions, remainingMs, withTimeout } from '../../lib/call-options.ts';
import type { ToolResult } from '../../tools/contract.ts';
import { conditionHolds } from './condition.ts';
import type { PlannedStep } from './plan.ts';
import { type StepBindings, fillTemplate } from './references.ts';

/** Time limit of one step; the deadline of the caller still applies. */
const STEP_TIMEOUT_MS = 30_000;

/** Calls the tool of a step: the invoker, or in a test the fixtures. */
export type StepCall = (step: PlannedStep, input: Json, op: CallOptions) => Promise<ToolResult>;

/**
 * Runs the steps one after another and returns the output of the last; a skipped step's output is null.
 * The first failure ends the run with the code of the failed call. Throws TEMPER_TOOL_TIMEOUT when no time is left for a step, and
 * TEMPER_CANCELLED when the caller cancelled the call.
 */
export async function runSteps(
  steps: readonly PlannedStep[],
  input: Json,
  call: StepCall,
  clock: Clock,
  op: CallOptions,
): Promise<Json> {
  const outputs = new Map<string, Json>();
  let prev: Json = null;
  for (const [index, step] of steps.entries()) {
    assertRunning(step, clock, op);
    const bindings: StepBindings = { input, prev, steps: outputs };
    if (step.condition !== undefined && !conditionHolds(step.condition, bindings)) prev = null;
    else {
      const argument: Json = fillTemplate(step.mapping, bindings) ?? {};
      const key = `${op.key}/${index + 1}`;
      const result: ToolResult = await withTimeout(
        op,
        clock,
        STEP_TIMEOUT_MS,
        (inner) => call(step, argument, inner),
        key,
      );
      if (!result.ok) throw failed(step, result.error);
      prev = result.output;
    }
    outputs.set(step.name, prev);
  }
  return prev;
}

function assertRunning({ name }: PlannedStep, clock: Clock, op: CallOptions): void {
  if (remainingMs(op, clock) === 0 || abortedByTimeout(op.signal)) {
    throw new TemperError('TEMPER_TOOL_TIMEOUT', `no time was left for step "${name}"; do less in one tool`);
  }
  if (op.signal.aborted) throw new TemperError('TEMPER_CANCELLED', `the call was cancelled before step "${name}"`);
}

function failed(step: PlannedStep, error: Extract<ToolResult, { ok: false }>['error']): TemperError {
  const message = `Step "${step.name}" (tool: "${step.toolName}") failed: ${error.message}`;
  return new TemperError(error.code, message, { details: error.rule === undefined ? {} : { rule: error.rule } });
}
