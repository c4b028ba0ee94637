import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { canonicalJson } from '../../lib/canonical.ts';
import type { ForgeLimits } from '../../policy/types.ts';
import type { ToolView } from '../../tools/contract.ts';
import type { ForgeRequest, Implementation, TestCase } from '../request.ts';

/** Duration limit of a composed tool as a whole: the tool timeout. Its steps have limits of their own. */
const COMPOSE_DURATION = '60s';
/** Default limits of a tool whose request sets none; the policy limits may lower them. */
const DEFAULT_DURATION_MS = 5_000;
const DEFAULT_MEMORY_BYTES = 134_217_728;

/** Builds the artifact: canonical JSON texts, dependencies pinned by digest, default limits where the request sets none. */
export function buildArtifact(request: ForgeRequest, ceilings: ForgeLimits, view: ToolView): ToolArtifact {
  const { implementation, limits } = request;
  const milliseconds = Math.min(DEFAULT_DURATION_MS, ceilings.durationMilliseconds);
  const duration = implementation.mode === 'Compose' ? COMPOSE_DURATION : durationText(milliseconds);
  return {
    name: request.name,
    description: request.description,
    inputSchema: canonicalJson(request.inputSchema),
    outputSchema: canonicalJson(request.outputSchema),
    implementation: buildImplementation(implementation, view),
    tests: request.tests.map(buildTest),
    requires: request.requires,
    limits: {
      duration: limits.duration ?? duration,
      memory: limits.memory ?? memoryText(Math.min(DEFAULT_MEMORY_BYTES, ceilings.memoryBytes)),
    },
  };
}

function buildImplementation(implementation: Implementation, view: ToolView): ToolArtifact['implementation'] {
  if (implementation.mode === 'Sandbox') return { mode: 'Sandbox', source: implementation.source };
  const steps = implementation.steps.map(({ name, tool, inputMapping, condition }) => ({
    name,
    tool: pinned(tool, view),
    inputMapping: canonicalJson(inputMapping),
    ...(condition === undefined ? {} : { condition }),
  }));
  return { mode: 'Compose', steps };
}

/** Names a forged tool with its digest, so that later calls use the version that was tested. */
function pinned(tool: string, view: ToolView): string {
  if (tool.includes('@')) return tool;
  const digest = view.find(tool)?.descriptor.forged?.digest;
  return digest === undefined ? tool : `${tool}@${digest}`;
}

function buildTest(test: TestCase): ToolArtifact['tests'][number] {
  return {
    input: canonicalJson(test.input),
    ...(test.expectedOutput === undefined ? {} : { expectedOutput: canonicalJson(test.expectedOutput) }),
    ...(test.fixtures.length === 0
      ? {}
      : {
          fixtures: test.fixtures.map((fixture) => ({
            tool: fixture.tool,
            ...(fixture.input === undefined ? {} : { input: canonicalJson(fixture.input) }),
            output: canonicalJson(fixture.output),
          })),
        }),
  };
}

function durationText(milliseconds: number): string {
  return milliseconds % 1_000 === 0 ? `${milliseconds / 1_000}s` : `${milliseconds}ms`;
}

function memoryText(bytes: number): string {
  const mebibyte = 1_048_576;
  return bytes % mebibyte === 0 ? `${bytes / mebibyte}Mi` : String(bytes);
}
