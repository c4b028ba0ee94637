import type { PlannedStep } from '../../forge/compose/plan.ts';
import { runSteps } from '../../forge/compose/run.ts';
import type { ParsedArtifact } from '../../forge/parse-artifact.ts';
import { sandboxJob } from '../../forge/sandbox-job.ts';
import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { deniedHostCalls } from '../../tools/host/host-calls.ts';
import type { NestedCall } from '../../tools/contract.ts';
import type { CallRecording } from '../../tools/recording/call-recording.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { ReplayedCalls } from './replayed-calls.ts';
import type { CaseOutputs, RunOutput } from './verification-case.ts';

export interface ReplayEnvironment {
  sandbox: Sandbox;
  clock: Clock;
  /** Runs a step whose output depends on its input alone. Undefined for every other step, whose answer is recorded. */
  readonly pureStep: (step: PlannedStep) => NestedCall | undefined;
}

/** Repeats a use twice with its recorded answers. A run that makes other calls fails, whatever it gives. */
export async function replayCase(
  open: ParsedArtifact,
  input: JsonObject,
  recording: CallRecording,
  environment: ReplayEnvironment,
  op: CallOptions,
): Promise<CaseOutputs> {
  const run = async (): Promise<RunOutput> => {
    const calls = new ReplayedCalls(recording);
    const output =
      open.plan === undefined
        ? await runSandboxed(open, input, calls, environment, op)
        : await runComposed(open, open.plan.steps, input, calls, environment, op);
    if (calls.mismatch === undefined || isNoVerdict(output)) return output;
    return { ok: false, code: 'TEMPER_REPLAY_MISMATCH', message: `the re-run differs from the use: ${calls.mismatch}` };
  };
  const first = await run();
  return [first, first.ok ? await run() : first];
}

function isNoVerdict(output: RunOutput): boolean {
  return !output.ok && (output.code === 'TEMPER_SANDBOX_UNAVAILABLE' || output.code === 'TEMPER_CANCELLED');
}

async function runSandboxed(
  open: ParsedArtifact,
  input: JsonObject,
  calls: ReplayedCalls,
  { sandbox }: ReplayEnvironment,
  op: CallOptions,
): Promise<RunOutput> {
  const { timeAndRandomness } = calls;
  const host = timeAndRandomness === undefined ? deniedHostCalls : calls.host;
  const options = timeAndRandomness === undefined ? {} : { timeAndRandomness };
  const outcome = await sandbox.run(sandboxJob(open, input, options), host, op);
  return outcome.ok ? outcome : { ok: false, code: outcome.code, message: outcome.message };
}

async function runComposed(
  open: ParsedArtifact,
  steps: readonly PlannedStep[],
  input: JsonObject,
  calls: ReplayedCalls,
  { clock, pureStep }: ReplayEnvironment,
  op: CallOptions,
): Promise<RunOutput> {
  try {
    const output = await withTimeout(op, clock, open.durationMilliseconds, (inner) =>
      runSteps(
        steps,
        input,
        async (step, argument, stepOp) =>
          pureStep(step)?.(step.tool, argument, stepOp) ?? calls.step(step.tool, argument),
        clock,
        inner,
      ),
    );
    return { ok: true, output };
  } catch (error) {
    if (!isTemperError(error)) throw error;
    return { ok: false, code: error.code, message: error.message };
  }
}
