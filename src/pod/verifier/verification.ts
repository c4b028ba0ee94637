import { describedBuiltInTools } from '../../engine/built-in.ts';
import type { VerificationOutputs, VerificationWork } from '../../gateway-api/pod-api.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { jsonDepth } from '../../lib/json.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { type CaseEnvironment, runCases } from '../../tempering/verification/run-cases.ts';
import { type CaseOutputs, isLimitFailure, type RunOutput } from '../../tempering/verification/verification-case.ts';
import { deniedHostCalls } from '../../tools/host/host-calls.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { NestedCall } from '../../tools/contract.ts';
import { createToolView } from '../../tools/view.ts';

/** Of all outputs together; the gateway accepts twice as much. */
const MAX_OUTPUT_BYTES = 4 * 1_024 * 1_024;
/** Below the limit of the gateway, whose count is exact. */
const MAX_OUTPUT_VALUES = 400_000;
const MAX_OUTPUT_DEPTH = 90;

/** Runs the cases of one round, and returns what they gave. Compares nothing: the pod does not know the expected outputs. */
export async function runVerification(
  { attempt, round, artifact, dependencies, cases, maxLimitFailures }: VerificationWork,
  { sandbox, clock }: { sandbox: Sandbox; clock: Clock },
  op: CallOptions,
): Promise<VerificationOutputs> {
  const pinned = new Map(dependencies.map((dependency) => [dependency.digest, dependency.artifact]));
  const environment: CaseEnvironment = {
    sandbox,
    clock,
    schemas: createSchemaCompiler(),
    view: createToolView(describedBuiltInTools()),
    invoke: builtInUnavailable,
    host: deniedHostCalls,
    dependency: (digest) => pinned.get(digest),
  };
  const budget = new OutputBudget();
  const outputs: CaseOutputs[] = [];
  let limitFailures = 0;
  for await (const runs of runCases(artifact, cases, environment, op)) {
    outputs.push([budget.take(runs[0]), budget.take(runs[1])]);
    if (runs.some(isLimitFailure)) limitFailures += 1;
    if (limitFailures === maxLimitFailures) return { attempt, round, outputs };
    if (remainingMs(op, clock) <= 0) break;
  }
  while (outputs.length < cases.length) outputs.push([TOO_SLOW, TOO_SLOW]);
  return { attempt, round, outputs };
}

const TOO_SLOW = failure(
  'TEMPER_TIMEOUT',
  'the tests and inputs before this one took all the time of the verification',
);

/** A verifier has no workspace, no memory and no messages of the agent. Only recorded results answer such steps. */
const builtInUnavailable: NestedCall = async (tool) => {
  const message = 'a verifier calls no built-in tool; a test needs a fixture for it';
  return { ok: false, tool, error: { code: 'TEMPER_TOOL_NOT_FOUND', message }, milliseconds: 0 };
};

/** Replaces outputs that the gateway would not accept by failures. */
class OutputBudget {
  #bytes = 0;
  #values = 0;

  take(run: RunOutput): RunOutput {
    if (!run.ok) return run;
    if (jsonDepth(run.output, MAX_OUTPUT_DEPTH) >= MAX_OUTPUT_DEPTH) {
      return failure('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', 'the output is nested too deeply for a verification');
    }
    const text = JSON.stringify(run.output);
    const values = (text.match(/[,[{]/g)?.length ?? 0) + 1;
    this.#bytes += Buffer.byteLength(text);
    this.#values += values;
    if (this.#bytes <= MAX_OUTPUT_BYTES && this.#values <= MAX_OUTPUT_VALUES) return run;
    return failure('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', 'the outputs of a verification have too many bytes together');
  }
}

function failure(code: ErrorCode, message: string): RunOutput {
  return { ok: false, code, message };
}
