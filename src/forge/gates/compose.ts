import { closestName } from '../../lib/closest.ts';
import { printable } from '../../lib/escape.ts';
import type { Decider } from '../../policy/types.ts';
import { toolRequest } from '../../tools/authorize.ts';
import type { ToolDescriptor, ToolView } from '../../tools/contract.ts';
import type { OpenArtifact } from '../open-artifact.ts';
import { splitReference, type Violation } from '../request.ts';

/** Who may be called by a composed tool, as its agent sees the world now. */
export interface ComposeWorld {
  view: ToolView;
  decider: Decider;
}

/** The static check of a composed tool: references and conditions, tools that exist and are permitted, fixtures where effects are. */
export function checkSteps(open: OpenArtifact, world: ComposeWorld): Violation[] {
  const steps = open.artifact.implementation.steps ?? [];
  const violations = [...(open.plan?.violations ?? [])];
  const effects = new Set<string>();
  for (const step of steps) {
    const { name, digest } = splitReference(step.tool);
    const place = `step "${printable(step.name, 64)}"`;
    const tool = world.view.find(name)?.descriptor;
    if (name === open.artifact.name || name === 'forge_tool') continue;
    const problem = tool === undefined ? unknownTool(name, world.view) : wrongTool(tool, digest, world.decider);
    if (problem !== undefined) violations.push({ code: 'TEMPER_FORGE_COMPOSE', message: `${place}: ${problem}` });
    else if (tool?.sideEffects === true && step.condition === undefined) effects.add(name);
  }
  return [...violations, ...missingFixtures(open, effects)];
}

function unknownTool(name: string, view: ToolView): string {
  const known = view.list().map((tool) => tool.name);
  const near = closestName(name, known);
  const hint = near !== undefined ? `did you mean ${near}?` : 'use a listed tool, or forge that one first';
  return `no tool is named "${printable(name, 64)}"; ${hint}`;
}

function wrongTool(tool: ToolDescriptor, digest: string | undefined, decider: Decider): string | undefined {
  if (digest !== undefined && tool.forged?.digest !== digest) {
    return `"${tool.name}" is not the version it is pinned to; name it without digest`;
  }
  const decision = decider.decide(toolRequest(tool));
  return decision.effect === 'Deny' ? `"${tool.name}" is not permitted: ${decision.reason}` : undefined;
}

/** A test may not act on the world, so each case answers for the tools that would. */
function missingFixtures(open: OpenArtifact, effects: ReadonlySet<string>): Violation[] {
  return open.tests.flatMap((test, index) => {
    const missing = [...effects].filter((tool) => !test.fixtures.some((fixture) => fixture.tool === tool));
    if (missing.length === 0) return [];
    const example = missing.map((tool) => `{"tool":"${tool}","output":…}`).join(',');
    const message = `test case ${index + 1}: ${missing.join(', ')} ${missing.length === 1 ? 'has' : 'have'} side effects and must not really be called; add "fixtures":[${example}] with the answers to use`;
    return [{ code: 'TEMPER_FORGE_COMPOSE', message }];
  });
}
