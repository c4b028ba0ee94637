import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { sameJson } from '../../forge/test-runs/compare-json.ts';
import { checkOutputs } from '../../forge/gates/output-schema.ts';
import { checkResults, countCases } from '../../forge/gates/tests.ts';
import { type ParsedArtifact, parseArtifact } from '../../forge/parse-artifact.ts';
import { splitReference } from '../../forge/request.ts';
import { runTests, type TestEnvironment } from '../../forge/test-runs/run-tests.ts';
import type { TestResult } from '../../forge/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { HostCalls, Sandbox } from '../../sandbox/port.ts';
import type { NestedCall, ToolResult, ToolView } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { RerunOutcome, Verifier } from '../types.ts';

/** Maximum depth of composed tools that call composed tools during verification. */
const MAX_DEPTH = 5;

export interface VerifierDeps {
  /** Opens a separate sandbox per verification, in processes that never ran a call of the author. */
  openSandbox(): Promise<{ sandbox: Sandbox; close(): Promise<void> }>;
  /** The artifact a composed tool is pinned to; undefined when it is not active. */
  dependency(digest: string): ToolArtifact | undefined;
  /** Built-in tools, for the steps of composed tools. Those with side effects are never called during verification. */
  view: ToolView;
  invoke: NestedCall;
  /** Host functions for tools that declare them. */
  host: HostCalls;
  schemas: SchemaCompiler;
  clock: Clock;
}

export function createVerifier(deps: VerifierDeps): Verifier {
  return {
    tests: (artifact, op) =>
      inFreshSandbox(deps, async (environment) => {
        const open = parseAccepted(artifact);
        const results = await runTests(open, environment, op);
        assertRan(results);
        const problems = [...checkResults(open, results), ...checkOutputs(open, results, deps.schemas)];
        const { passed, failed } = countCases(open, results);
        const refused = problems.length > 0 && failed === 0 ? 1 : 0;
        return { passed: passed - refused, failed: failed + refused, problems: problems.map(({ message }) => message) };
      }),
    outputs: (artifact, inputs, op) =>
      inFreshSandbox(deps, async (environment) => {
        const outcomes: RerunOutcome[] = [];
        for (const input of inputs) outcomes.push(await outputOf(artifact, input, environment, op));
        return outcomes;
      }),
  };
}

async function inFreshSandbox<T>(deps: VerifierDeps, work: (environment: TestEnvironment) => Promise<T>): Promise<T> {
  const fresh = await deps.openSandbox();
  try {
    const { clock, schemas, view, host } = deps;
    const base = { sandbox: fresh.sandbox, clock, schemas, view, host, concurrency: 1 };
    return await work({ ...base, invoke: nestedCall(deps, base, 1) });
  } finally {
    await fresh.close();
  }
}

/** Forged steps also run in the fresh sandbox; only built-in tools are called outside of it. */
function nestedCall(deps: VerifierDeps, base: Omit<TestEnvironment, 'invoke'>, depth: number): NestedCall {
  return async (tool, input, op): Promise<ToolResult> => {
    const { digest } = splitReference(tool);
    if (digest === undefined) return deps.invoke(tool, input, op);
    const artifact = deps.dependency(digest);
    const milliseconds = 0;
    if (artifact === undefined || depth > MAX_DEPTH) {
      const message =
        artifact === undefined ? `${tool} is not active` : `${tool} is called more than ${MAX_DEPTH} deep`;
      return { ok: false, tool, error: { code: 'TEMPER_TOOL_NOT_FOUND', message }, milliseconds };
    }
    const outcome = await outputOf(artifact, input, { ...base, invoke: nestedCall(deps, base, depth + 1) }, op);
    if (outcome.ok) return { ok: true, tool, output: outcome.output, milliseconds };
    return { ok: false, tool, error: { code: outcome.code, message: outcome.message }, milliseconds };
  };
}

/** Runs one input as the only test, so that it runs twice and a killed run does not affect other inputs. */
async function outputOf(
  artifact: ToolArtifact,
  input: Json,
  environment: TestEnvironment,
  op: CallOptions,
): Promise<RerunOutcome> {
  const open = { ...parseAccepted(artifact), tests: [{ input: input as { [key: string]: Json }, fixtures: [] }] };
  const results = await runTests(open, environment, op);
  assertRan(results);
  const [first, second] = results;
  const failure = first?.failure ?? second?.failure;
  if (failure !== undefined) return { ok: false, ...failure };
  if (first?.got === undefined || second?.got === undefined) {
    return { ok: false, code: 'TEMPER_FORGE_TEST_FAILED', message: 'the tool gave no output' };
  }
  if (!mayVary(artifact) && !sameJson(first.got, second.got)) {
    return {
      ok: false,
      code: 'TEMPER_FORGE_NONDETERMINISTIC',
      message: 'two runs of one input gave different outputs',
    };
  }
  return { ok: true, output: first.got };
}

function mayVary({ requires }: ToolArtifact): boolean {
  return requires.apis.some((api) => api === 'clock' || api === 'random' || api === 'fetch');
}

function parseAccepted(artifact: ToolArtifact): ParsedArtifact {
  const open = parseArtifact(artifact);
  if ('malformed' in open) throw new TemperError('TEMPER_INTERNAL', `an accepted tool is malformed: ${open.malformed}`);
  return open;
}

/** Throws when the sandbox could not run the tool; that is no verdict about the tool. */
function assertRan(results: readonly TestResult[]): void {
  for (const { failure } of results) {
    if (failure?.code === 'TEMPER_SANDBOX_UNAVAILABLE' || failure?.code === 'TEMPER_CANCELLED') {
      throw new TemperError(failure.code, `the tool could not be run again: ${failure.message}`, { retry: 'backoff' });
    }
  }
}
