import { TOOL_LIMIT_BOUNDS } from '../../api/tool-limits.ts';
import type { Decider } from '../../policy/types.ts';
import type { ToolView } from '../../tools/contract.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import { countDistinctTests } from './shape.ts';

/** The policy and the tools of the agent, as the side that runs the gates sees them. */
export interface StaticGateContext {
  decider: Decider;
  view: ToolView;
  /** A user imports the tool for all sessions of the agent. */
  isImport?: boolean;
}

/** Checks the limits that agent, level and policy set: mode, host functions, hosts, paths, limits, counts. Returns every limit that the tool exceeds. */
export function checkPolicyLimits(open: ParsedArtifact, context: StaticGateContext): ForgeViolation[] {
  const { decider } = context;
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
  const full = checkCount(artifact.name, context);
  if (full !== undefined) violations.push(full);
  return violations;
}

/** Imported tools stay for all sessions, so they count together and against the limit of the agent. */
function checkCount(name: string, { decider, view, isImport = false }: StaticGateContext): ForgeViolation | undefined {
  const { sessionTools, agentTools } = decider.forgeLimits;
  // A tool with the same name is replaced.
  const others = view.list().filter(({ name: other, forged }) => forged?.tier === 'Session' && other !== name);
  const held = others.filter(({ forged }) => (forged?.imported === true) === isImport).length;
  const limit = isImport ? agentTools : sessionTools;
  if (held < limit) return undefined;
  const message = isImport
    ? `the agent has ${held} of ${limit} allowed imported tools; demote one, or raise forge.limits.agentTools`
    : `the session has ${held} of ${limit} allowed forged tools; use the existing ones, or drop one`;
  return { code: 'TEMPER_FORGE_LIMIT_REACHED', message };
}

function listed(items: readonly string[]): string {
  return items.length === 0 ? 'none' : items.join(', ');
}
