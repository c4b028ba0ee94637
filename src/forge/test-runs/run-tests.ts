import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { Json } from '../../lib/json.ts';
import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type { HostCalls, Sandbox } from '../../sandbox/port.ts';
import type { NestedCall, ToolResult, ToolView } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { differenceFrom } from './compare-json.ts';
import { fixtureHost } from './fixture-host.ts';
import { FixtureResponder } from './fixture-responder.ts';
import type { PlannedStep } from '../compose/plan.ts';
import { runSteps, type StepCall } from '../compose/run.ts';
import { sandboxJob } from '../sandbox-job.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { TestCase } from '../request.ts';
import type { TestResult } from '../types.ts';

export interface TestEnvironment {
  sandbox: Sandbox;
  /** The session that forges. */
  owner?: string | undefined;
  clock: Clock;
  schemas: SchemaCompiler;
  /** Number of concurrent runs. */
  concurrency: number;
  view: ToolView;
  invoke: NestedCall;
  host: HostCalls;
}

type RunOutcome = Pick<TestResult, 'got' | 'failure' | 'milliseconds' | 'heapBytes'>;

/** One of these failures ends the test runs: the next run would be killed as well. */
const FATAL_CODES = new Set([
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_SANDBOX_MEMORY',
  'TEMPER_SANDBOX_CRASHED',
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_CANCELLED',
]);

/** Runs every case twice, each run in its own environment, and compares the outputs outside it. Returns the results ordered by case and run. */
export async function runTests(
  open: ParsedArtifact,
  environment: TestEnvironment,
  op: CallOptions,
): Promise<TestResult[]> {
  const runs = open.tests.flatMap((test, index) => [
    { test, case: index + 1, run: 1 as const },
    { test, case: index + 1, run: 2 as const },
  ]);
  const results: TestResult[] = [];
  let next = 0;
  let stopped = false;
  const runWorker = async (): Promise<void> => {
    for (;;) {
      const position = next;
      const entry = runs[position];
      if (entry === undefined || stopped) return;
      next += 1;
      const outcome = await runWithRetry(open, entry.test, environment, op);
      if (outcome.failure !== undefined && FATAL_CODES.has(outcome.failure.code)) stopped = true;
      results[position] = { case: entry.case, run: entry.run, passed: passes(entry.test, outcome), ...outcome };
    }
  };
  await Promise.all(Array.from({ length: environment.concurrency }, runWorker));
  return results.filter((result) => result !== undefined);
}

function passes(test: TestCase, { got, failure }: RunOutcome): boolean {
  if (failure !== undefined || got === undefined) return false;
  return test.expectedOutput === undefined || differenceFrom(test.expectedOutput, got) === undefined;
}

/** The container of the sandbox may have been restarted in the middle of the run. A tool that ends its process does so again. */
async function runWithRetry(
  open: ParsedArtifact,
  test: TestCase,
  environment: TestEnvironment,
  op: CallOptions,
): Promise<RunOutcome> {
  const outcome = await runOnce(open, test, environment, op);
  return outcome.failure?.code === 'TEMPER_SANDBOX_CRASHED' ? runOnce(open, test, environment, op) : outcome;
}

function runOnce(
  open: ParsedArtifact,
  test: TestCase,
  environment: TestEnvironment,
  op: CallOptions,
): Promise<RunOutcome> {
  return open.plan === undefined
    ? runSandboxed(open, test, environment, op)
    : runComposed(open, open.plan.steps, test, environment, op);
}

async function runSandboxed(
  open: ParsedArtifact,
  test: TestCase,
  { sandbox, host, clock, owner }: TestEnvironment,
  op: CallOptions,
): Promise<RunOutcome> {
  const outcome = await sandbox.run(
    sandboxJob(open, test.input, owner === undefined ? {} : { owner }),
    fixtureHost(test, host, clock),
    op,
  );
  const { milliseconds, heapBytes } = outcome.usage;
  if (outcome.ok) return { got: outcome.output, milliseconds, heapBytes };
  return { failure: { code: outcome.code, message: outcome.message }, milliseconds, heapBytes };
}

async function runComposed(
  open: ParsedArtifact,
  steps: readonly PlannedStep[],
  test: TestCase,
  environment: TestEnvironment,
  op: CallOptions,
): Promise<RunOutcome> {
  const { clock } = environment;
  const started = clock.monotonic();
  const elapsed = (): number => clock.monotonic() - started;
  try {
    const got = await withTimeout(op, clock, open.durationMilliseconds, (inner) =>
      runSteps(steps, test.input, fixtureCall(test, environment), clock, inner),
    );
    return { got, milliseconds: elapsed(), heapBytes: 0 };
  } catch (error) {
    if (!isTemperError(error)) throw error;
    return { failure: { code: error.code, message: error.message }, milliseconds: elapsed(), heapBytes: 0 };
  }
}

/** Answers a step from the fixtures. A tool without side effects may be called for real, through the invoker with all its checks. */
function fixtureCall(test: TestCase, { view, invoke, schemas, clock }: TestEnvironment): StepCall {
  const fixtures = new FixtureResponder(test.fixtures);
  return async (step, input, op) => {
    const started = clock.monotonic();
    const fixture = fixtures.outputFor(step.toolName, input);
    const tool = view.find(step.toolName)?.descriptor;
    if (fixture === undefined && tool?.sideEffects !== true) return invoke(step.tool, input, op);
    try {
      if (fixture === undefined) throw noFixture(step, input);
      if (tool !== undefined) {
        assertFits(schemas.check(tool.inputSchema)(input), 'TEMPER_TOOL_INPUT_INVALID', 'its arguments');
        const check = tool.outputSchema === undefined ? undefined : schemas.check(tool.outputSchema);
        assertFits(check?.(fixture.output) ?? [], 'TEMPER_FORGE_COMPOSE', 'the fixture');
      }
      return { ok: true, tool: step.tool, output: fixture.output, milliseconds: clock.monotonic() - started };
    } catch (error) {
      return failedCall(step, error, clock.monotonic() - started);
    }
  };
}

function noFixture(step: PlannedStep, input: Json): TemperError {
  const example = printable(JSON.stringify({ tool: step.toolName, input }).slice(0, -1), 300);
  return new TemperError(
    'TEMPER_FORGE_COMPOSE',
    `"${step.toolName}" has side effects and is not called in a test; add the fixture ${example},"output":…}`,
  );
}

function assertFits(
  problems: readonly string[],
  code: 'TEMPER_TOOL_INPUT_INVALID' | 'TEMPER_FORGE_COMPOSE',
  what: string,
): void {
  if (problems.length > 0) throw new TemperError(code, `${what}: ${problems.join('; ')}`);
}

function failedCall(step: PlannedStep, error: unknown, milliseconds: number): ToolResult {
  const code = isTemperError(error) ? error.code : 'TEMPER_TOOL_FAILED';
  return { ok: false, tool: step.tool, error: { code, message: messageOf(error) }, milliseconds };
}
