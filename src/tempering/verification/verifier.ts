import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { HostCalls, Sandbox } from '../../sandbox/port.ts';
import type { NestedCall, ToolView } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { RecordedInput, Verifier } from '../types.ts';
import { assertRan, outcomeOf, replayOutcomeOf, reportTests } from './compare-outputs.ts';
import { parseAccepted, runCases } from './run-cases.ts';
import type { CaseOutputs, VerificationCase } from './verification-case.ts';

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

/** A verifier in this process: runs the cases in sandboxes of their own and compares the outputs outside of them. */
export function createVerifier(deps: VerifierDeps): Verifier {
  return {
    async tests(artifact, op) {
      const open = parseAccepted(artifact);
      const cases = open.tests.map(({ input, fixtures }) => ({ input, fixtures }));
      return reportTests(open, await runFresh(deps, artifact, cases, op), deps.schemas);
    },
    async outputs(artifact, inputs, op) {
      const cases = inputs.map((input) => ({ input: input as JsonObject, fixtures: [] }));
      const outputs = await runFresh(deps, artifact, cases, op);
      return outputs.map((runs) => outcomeOf(artifact, runs));
    },
    async replay(artifact, uses, op) {
      const outputs = await runFresh(deps, artifact, uses.map(replayCaseOf), op);
      return outputs.flatMap((runs, index) => {
        const use = uses[index];
        return use === undefined ? [] : [replayOutcomeOf(use, artifact, runs)];
      });
    },
  };
}

function replayCaseOf({ input, recording }: RecordedInput): VerificationCase {
  const test = { input: input as JsonObject, fixtures: [] };
  return recording === undefined ? test : { ...test, recording };
}

async function runFresh(
  deps: VerifierDeps,
  artifact: ToolArtifact,
  cases: readonly VerificationCase[],
  op: CallOptions,
): Promise<CaseOutputs[]> {
  const fresh = await deps.openSandbox();
  try {
    const { clock, schemas, view, host, invoke } = deps;
    const dependency = (digest: string) => deps.dependency(digest);
    const environment = { sandbox: fresh.sandbox, clock, schemas, view, host, invoke, dependency };
    const outputs: CaseOutputs[] = [];
    for await (const runs of runCases(artifact, cases, environment, op)) {
      assertRan(runs);
      outputs.push(runs);
    }
    return outputs;
  } finally {
    await fresh.close();
  }
}
