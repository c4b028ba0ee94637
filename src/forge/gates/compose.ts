import { suggestName } from '../../lib/suggest.ts';
import { printable } from '../../lib/printable.ts';
import type { Decider } from '../../policy/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { ToolDescriptor, ToolView } from '../../tools/contract.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import { splitReference, type ForgeViolation } from '../request.ts';

/** The tools and the policy that decide which tools a composed tool may call. */
export interface ComposeContext {
  view: ToolView;
  decider: Decider;
}

/** The static check of a composed tool: valid references and conditions, existing and permitted tools, fixtures for tools with side effects. */
export function checkSteps(open: ParsedArtifact, context: ComposeContext): ForgeViolation[] {
  const steps = open.artifact.implementation.steps ?? [];
  const violations = [...(open.plan?.violations ?? [])];
  const withEffects = new Set<string>();
  for (const step of steps) {
    const { name, digest } = splitReference(step.tool);
    const label = `step "${printable(step.name, 64)}"`;
    const tool = context.view.find(name)?.descriptor;
    if (name === open.artifact.name || name === FORGE_TOOL_NAME) continue;
    const problem = tool === undefined ? unknownTool(name, context.view) : toolProblem(tool, digest, context.decider);
    if (problem !== undefined) violations.push({ code: 'TEMPER_FORGE_COMPOSE', message: `${label}: ${problem}` });
    else if (tool?.sideEffects === true && step.condition === undefined) withEffects.add(name);
  }
  return [...violations, ...missingFixtures(open, withEffects)];
}

function unknownTool(name: string, view: ToolView): string {
  const known = view.list().map((tool) => tool.name);
  const near = suggestName(name, known);
  const hint = near !== undefined ? `did you mean ${near}?` : 'use a listed tool, or forge that one first';
  return `no tool is named "${printable(name, 64)}"; ${hint}`;
}

function toolProblem(tool: ToolDescriptor, digest: string | undefined, decider: Decider): string | undefined {
  if (digest !== undefined && tool.forged?.digest !== digest) {
    return `"${tool.name}" has another version than the pinned one; name it without digest`;
  }
  const decision = decider.decide(toolRequest(tool));
  return decision.effect === 'Deny' ? `"${tool.name}" is not permitted: ${decision.reason}` : undefined;
}

/** A test may have no side effects, so each case needs a fixture for every tool that has them. */
function missingFixtures(open: ParsedArtifact, withEffects: ReadonlySet<string>): ForgeViolation[] {
  return open.tests.flatMap((test, index) => {
    const missing = [...withEffects].filter((tool) => !test.fixtures.some((fixture) => fixture.tool === tool));
    if (missing.length === 0) return [];
    const example = missing.map((tool) => `{"tool":"${tool}","output":…}`).join(',');
    const message = `test case ${index + 1}: ${missing.join(', ')} ${missing.length === 1 ? 'has' : 'have'} side effects and must not be called in a test; add "fixtures":[${example}] with the outputs to use`;
    return [{ code: 'TEMPER_FORGE_COMPOSE', message }];
  });
}
