import type { Decider } from '../../policy/types.ts';
import type { ToolView } from '../../tools/contract.ts';
import type { OpenArtifact } from '../open-artifact.ts';
import type { Violation } from '../request.ts';

/** A chain takes as long as its steps, each with limits of its own; as a whole no longer than any tool. */
const COMPOSE_MILLISECONDS = 60_000;

/** What agent, level and policy let any tool have: mode, host functions, hosts, paths, limits, numbers. All that is exceeded, together. */
export function checkCeilings(open: OpenArtifact, decider: Decider, view: ToolView): Violation[] {
  const { artifact } = open;
  const { ceilings } = decider;
  const { mode } = artifact.implementation;
  const violations: Violation[] = [];
  const refuse = (message: string): void => {
    violations.push({ code: 'TEMPER_FORGE_CEILING', message });
  };
  if (!ceilings.allowed) {
    const message = 'this agent may not forge here; use the tools there are';
    return [{ code: 'TEMPER_FORGE_DISABLED', message }];
  }
  const decision = decider.decide({ kind: 'Forge', mode, ...artifact.requires });
  if (decision.effect === 'Deny') refuse(decision.reason);
  if (!ceilings.modes.includes(mode)) refuse(`mode ${mode} is not allowed; allowed: ${listed(ceilings.modes)}`);
  const apis = artifact.requires.apis.filter((api) => !ceilings.apis.includes(api));
  if (apis.length > 0) refuse(`${listed(apis)} may not be asked for; allowed: ${listed(ceilings.apis)}`);
  const longest = mode === 'Compose' ? COMPOSE_MILLISECONDS : ceilings.durationMilliseconds;
  if (open.durationMilliseconds > longest) {
    refuse(`limits.duration ${artifact.limits.duration} is more than the ${longest} ms allowed`);
  }
  if (open.memoryBytes > ceilings.memoryBytes) {
    refuse(`limits.memory ${artifact.limits.memory} is more than the ${ceilings.memoryBytes} bytes allowed`);
  }
  if (artifact.tests.length < ceilings.minTestCases) {
    refuse(`${artifact.tests.length} test cases are less than the ${ceilings.minTestCases} asked for`);
  }
  const session = view.list().filter((tool) => tool.forged?.tier === 'Session').length;
  if (session >= ceilings.sessionTools) {
    const message = `the session has ${session} of ${ceilings.sessionTools} forged tools allowed; use those there are`;
    violations.push({ code: 'TEMPER_FORGE_LIMIT_REACHED', message });
  }
  return violations;
}

function listed(items: readonly string[]): string {
  return items.length === 0 ? 'none' : items.join(', ');
}
