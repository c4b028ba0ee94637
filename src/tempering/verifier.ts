import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { sameJson } from '../forge/compare.ts';
import { checkOutputs } from '../forge/gates/output-schema.ts';
import { checkResults, countCases } from '../forge/gates/tests.ts';
import { type OpenArtifact, openArtifact } from '../forge/open-artifact.ts';
import { splitReference } from '../forge/request.ts';
import { runTests, type TestEnvironment } from '../forge/test-runs.ts';
import type { TestResult } from '../forge/types.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { HostCalls, Sandbox } from '../sandbox/port.ts';
import type { NestedCall, ToolResult, ToolView } from '../tools/contract.ts';
import type { SchemaCompiler } from '../tools/schemas.ts';
import type { RerunOutcome, Verifier } from './types.ts';

/** How deep composed tools may call composed tools while verified. */
const MAXIMUM_DEPTH = 5;

export interface VerifierDeps {
  /** A sandbox of its own for each verification: other processes than those that ran the author's calls. */
  open(): Promise<{ sandbox: Sandbox; close(): Promise<void> }>;
  /** The artifact a composed tool is pinned to; undefined when it is not active. */
  dependency(digest: string): ToolArtifact | undefined;
  /** Tools that are not forged, for the steps of composed ones. Those with side effects are never called here. */
  view: ToolView;
  invoke: NestedCall;
  /** Host functions of tools that declared them. */
  host: HostCalls;
  schemas: SchemaCompiler;
  clock: Clock;
}

export function createVerifier(deps: VerifierDeps): Verifier {
  return {
    tests: (artifact, op) =>
      inFreshSandbox(deps, async (environment) => {
        const open = opened(artifact);
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
  const opened = await deps.open();
  try {
    const { clock, schemas, view, host } = deps;
    const base = { sandbox: opened.sandbox, clock, schemas, view, host, concurrency: 1 };
    return await work({ ...base, invoke: nestedCall(deps, base, 1) });
  } finally {
    await opened.close();
  }
}

/** Forged steps run in the fresh sandbox as well; only tools that are not forged are asked of the world outside. */
function nestedCall(deps: VerifierDeps, base: Omit<TestEnvironment, 'invoke'>, depth: number): NestedCall {
  return async (tool, input, op): Promise<ToolResult> => {
    const { digest } = splitReference(tool);
    if (digest === undefined) return deps.invoke(tool, input, op);
    const artifact = deps.dependency(digest);
    const milliseconds = 0;
    if (artifact === undefined || depth > MAXIMUM_DEPTH) {
      const message =
        artifact === undefined ? `${tool} is not active` : `${tool} is called more than ${MAXIMUM_DEPTH} deep`;
      return { ok: false, tool, error: { code: 'TEMPER_TOOL_NOT_FOUND', message }, milliseconds };
    }
    const outcome = await outputOf(artifact, input, { ...base, invoke: nestedCall(deps, base, depth + 1) }, op);
    if (outcome.ok) return { ok: true, tool, output: outcome.output, milliseconds };
    return { ok: false, tool, error: { code: outcome.code, message: outcome.message }, milliseconds };
  };
}

/** One input as the only test, so that it runs twice and a run that is killed ends no other. */
async function outputOf(
  artifact: ToolArtifact,
  input: Json,
  environment: TestEnvironment,
  op: Op,
): Promise<RerunOutcome> {
  const open = { ...opened(artifact), tests: [{ input: input as { [key: string]: Json }, fixtures: [] }] };
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

function opened(artifact: ToolArtifact): OpenArtifact {
  const open = openArtifact(artifact);
  if ('malformed' in open) throw new TemperError('TEMPER_INTERNAL', `an accepted tool is malformed: ${open.malformed}`);
  return open;
}

/** A sandbox that could not run says nothing about the tool. */
function assertRan(results: readonly TestResult[]): void {
  for (const { failure } of results) {
    if (failure?.code === 'TEMPER_SANDBOX_UNAVAILABLE' || failure?.code === 'TEMPER_CANCELLED') {
      throw new TemperError(failure.code, `the tool could not be run again: ${failure.message}`, { retry: 'backoff' });
    }
  }
}
