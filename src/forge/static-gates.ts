import { shortDigest } from '../lib/canonical.ts';
import type { Decider } from '../policy/types.ts';
import type { ToolView } from '../tools/contract.ts';
import { type GateRecorder, hasViolations } from './gate-recorder.ts';
import { checkSteps } from './gates/compose.ts';
import { checkPolicyLimits } from './gates/policy-limits.ts';
import { type ArtifactInspection, inspectArtifact, type SubmittedArtifact } from './gates/inspect-artifact.ts';
import type { ParsedArtifact } from './parse-artifact.ts';
import type { RefusedTool } from './types.ts';

/** The policy and the tools of the agent, as the side that runs the gates sees them. */
export interface StaticGateContext {
  decider: Decider;
  view: ToolView;
}

export interface StaticGatesPassed {
  open: ParsedArtifact;
  warnings: string[];
}

/**
 * Runs the gates that execute no code of the tool: shape, static, schemas, build and the policy limits, the cheapest first.
 * The author's side and the review both call this function, so the review repeats exactly what the author's side ran.
 * `inspection` is what `inspectArtifact` returned for the same submission, on this thread or another.
 * The policy limits are not recorded as passed: only the review decides them.
 */
export function runStaticGates(
  submitted: SubmittedArtifact,
  context: StaticGateContext,
  log: GateRecorder,
  inspection: ArtifactInspection = inspectArtifact(submitted),
): StaticGatesPassed | RefusedTool {
  const { open, shape, code, schemas, build } = inspection;
  log.digest = open?.digest;
  if (hasViolations(shape)) return log.refuse('shape', shape);
  if (open === undefined) throw new TypeError('an inspection without violations has an artifact');
  log.pass('shape');
  const steps = open.plan === undefined ? [] : checkSteps(open, context);
  const violations = [...steps, ...code.violations];
  if (hasViolations(violations)) return log.refuse('static', violations);
  log.pass('static', code.warnings.length === 0 ? '' : `${code.warnings.length} warnings`);
  if (hasViolations(schemas)) return log.refuse('schemas', schemas);
  log.pass('schemas');
  if (hasViolations(build)) return log.refuse('build', build);
  log.pass('build', shortDigest(open.digest));
  const limits = checkPolicyLimits(open, context.decider, context.view);
  if (hasViolations(limits)) return log.refuse('policy', limits);
  return { open, warnings: code.warnings };
}
