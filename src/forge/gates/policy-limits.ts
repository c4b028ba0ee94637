import { TOOL_LIMIT_BOUNDS } from '../../api/tool-limits.ts';
import type { Decider } from '../../policy/types.ts';
import type { ToolView } from '../../tools/contract.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import { countDistinctTests } from './shape.ts';

/** Checks the limits that agent, level and policy set: mode, host functions, hosts, paths, limits, counts. Returns every limit that the tool exceeds. */
export function checkPolicyLimits(open: ParsedArtifact, decider: Decider, view: ToolView): ForgeViolation[] {
  const { artifact } = open;
  const { forgeLimits: ceilings } = decider;
  const { mode } = artifact.implementation;
  const violations: ForgeViolation[] = [];
  const refuse = (message: string): void => {
    violations.push({ code: 'TEMPER_FORGE_LIMIT_EXCEEDED', message });
  };
  if (!ceilings.allowed) {
    const message = 'this agent may not forge tools; use the existing tools';
    return [{ code: 'TEMPER_FORGE_DISABLED', message }];
  }
  const decision = decider.decide({ kind: 'Forge', mode, ...artifact.requires });
  if (decision.effect === 'Deny') refuse(decision.reason);
  if (!ceilings.modes.includes(mode)) refuse(`mode ${mode} is not allowed; allowed: ${listed(ceilings.modes)}`);
  const apis = artifact.requires.apis.filter((api) => !ceilings.apis.includes(api));
  if (apis.length > 0) refuse(`${listed(apis)} may not be used; allowed: ${listed(ceilings.apis)}`);
  const maxDuration = mode === 'Compose' ? TOOL_LIMIT_BOUNDS.composedDurationMs.maximum : ceilings.durationMilliseconds;
  if (open.durationMilliseconds > maxDuration) {
    refuse(`limits.duration ${artifact.limits.duration} is more than the ${maxDuration} ms allowed`);
  }
  if (open.memoryBytes > ceilings.memoryBytes) {
    refuse(`limits.memory ${artifact.limits.memory} is more than the ${ceilings.memoryBytes} bytes allowed`);
  }
  const tests = countDistinctTests(open.tests, open.inputSchema);
  if (tests < ceilings.minTestCases) {
    refuse(`${tests} different test cases are fewer than the ${ceilings.minTestCases} required`);
  }
  // A tool with the same name is replaced.
  const others = view.list().filter(({ name, forged }) => forged?.tier === 'Session' && name !== artifact.name);
  const session = others.length;
  if (session >= ceilings.sessionTools) {
    const message = `the session has ${session} of ${ceilings.sessionTools} allowed forged tools; use the existing ones, or drop one`;
    violations.push({ code: 'TEMPER_FORGE_LIMIT_REACHED', message });
  }
  return violations;
}

function listed(items: readonly string[]): string {
  return items.length === 0 ? 'none' : items.join(', ');
}
