import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { PlannedStep } from '../../forge/compose/plan.ts';
import { type ParsedArtifact, parseArtifact } from '../../forge/parse-artifact.ts';
import { isPure } from '../../forge/compose/purity.ts';
import { splitReference, type TestCase } from '../../forge/request.ts';
import { runTests, type TestEnvironment } from '../../forge/test-runs/run-tests.ts';
import type { TestResult } from '../../forge/types.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { NestedCall, ToolResult } from '../../tools/contract.ts';
import { outcomeOf } from './compare-outputs.ts';
import { replayCase } from './replay-case.ts';
import type { CaseOutputs, RunOutput, VerificationCase } from './verification-case.ts';

/** Maximum depth of composed tools that call composed tools during verification. */
const MAX_DEPTH = 5;

export interface CaseEnvironment extends Omit<TestEnvironment, 'concurrency' | 'invoke'> {
  /** The artifact a composed tool is pinned to; undefined when it is not active. */
  dependency(digest: string): ToolArtifact | undefined;
  /** Calls a built-in tool for a step of a composed tool. */
  invoke: NestedCall;
}

/**
 * Runs each case twice in the sandbox. Compares nothing: what a hostile tool makes of the outputs is for the caller, outside the
 * processes that ran it, to find. A killed run affects no other case.
 */
export async function* runCases(
  artifact: ToolArtifact,
  cases: readonly VerificationCase[],
  environment: CaseEnvironment,
  op: CallOptions,
): AsyncGenerator<CaseOutputs> {
  const open = parseAccepted(artifact);
  for (const test of cases) yield await runCase(open, test, environment, op, 1);
}

export function parseAccepted(artifact: ToolArtifact): ParsedArtifact {
  const open = parseArtifact(artifact);
  if ('malformed' in open) throw new TemperError('TEMPER_INTERNAL', `an accepted tool is malformed: ${open.malformed}`);
  return open;
}

async function runCase(
  open: ParsedArtifact,
  test: VerificationCase,
  environment: CaseEnvironment,
  op: CallOptions,
  depth: number,
): Promise<CaseOutputs> {
  if (test.recording !== undefined) {
    const pureStep = ({ tool }: PlannedStep) =>
      isPureTool(tool, environment) ? nestedCall(environment, depth) : undefined;
    return replayCase(open, test.input, test.recording, { ...environment, pureStep }, op);
  }
  const tests: TestCase[] = [{ input: test.input, fixtures: [...test.fixtures] }];
  const invoke = nestedCall(environment, depth);
  const results = await runTests({ ...open, tests }, { ...environment, invoke, concurrency: 1 }, op);
  const [first, second = first] = results.map(outputOf);
  if (first === undefined || second === undefined) {
    throw new TemperError('TEMPER_INTERNAL', 'a run of a verification ended without a result');
  }
  return [first, second];
}

/** The same rule by which a use records the call of a step. */
function isPureTool(tool: string, environment: CaseEnvironment, depth = 1): boolean {
  const { digest } = splitReference(tool);
  const artifact = digest === undefined ? undefined : environment.dependency(digest);
  if (artifact === undefined || depth > MAX_DEPTH) return false;
  return isPure(artifact, (step) => isPureTool(step, environment, depth + 1));
}

function outputOf({ got, failure }: TestResult): RunOutput {
  if (failure !== undefined) return { ok: false, ...failure };
  if (got !== undefined) return { ok: true, output: got };
  return { ok: false, code: 'TEMPER_FORGE_TEST_FAILED', message: 'the tool gave no output' };
}

/** Forged steps also run in the fresh sandbox; only built-in tools are called outside of it. */
function nestedCall(environment: CaseEnvironment, depth: number): NestedCall {
  return async (tool, input, op): Promise<ToolResult> => {
    const { digest } = splitReference(tool);
    if (digest === undefined) return environment.invoke(tool, input, op);
    const artifact = environment.dependency(digest);
    const milliseconds = 0;
    if (artifact === undefined || depth > MAX_DEPTH) {
      const message =
        artifact === undefined ? `${tool} is not active` : `${tool} is called more than ${MAX_DEPTH} deep`;
      return { ok: false, tool, error: { code: 'TEMPER_TOOL_NOT_FOUND', message }, milliseconds };
    }
    const nested = { input: input as JsonObject, fixtures: [] };
    const outputs = await runCase(parseAccepted(artifact), nested, environment, op, depth + 1);
    const outcome = outcomeOf(artifact, outputs);
    if (outcome.ok) return { ok: true, tool, output: outcome.output, milliseconds };
    return { ok: false, tool, error: { code: outcome.code, message: outcome.message }, milliseconds };
  };
}
