import { DIMENSION_NAMES, type Dimension, isTighter } from '../../api/limits/constraints.ts';
import type { SubConstraints } from '../../api/v1alpha1/trust/constraints.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { actionsOf, tightest } from '../levels.ts';
import type { LevelProfile } from '../levels.ts';
import type { Constraints } from '../tables.ts';
import type { ActionType, PolicySnapshot } from '../types.ts';

/** An effective level with the constraints of the TrustPolicy and of the Agent, each of which only tightens it. */
export interface ConstrainedLevel extends LevelProfile {
  limits: Readonly<Record<Dimension, DimensionLimit>>;
  /** Each action that needs an approver, and what requires it: `level restricted` or a field. */
  approvals: ReadonlyMap<ActionType, string>;
}

/** What decides about a dimension. Of equal values, the level comes first, then the TrustPolicy. */
interface DimensionLimit {
  /** `level restricted`, `constraints.git of TrustPolicy "standard"` or `spec.constraints.git of agent "analyst"`. */
  by: string;
  isLevel: boolean;
  /** The field of the agent and its value, when something else is tighter. */
  withoutEffect: string | undefined;
}

/** Throws TEMPER_MANIFEST_INVALID for an action that is not registered. */
export function constrainedLevel(level: LevelProfile, { agent, policy }: PolicySnapshot): ConstrainedLevel {
  const [ofPolicy, ofAgent] = [`of TrustPolicy "${policy.name}"`, `of agent "${agent.name}"`];
  const policyOverlay = overlay(policy.spec.constraints, 'constraints.requireApproval', policy.spec);
  const agentOverlay = overlay(agent.spec.constraints, `spec.constraints.requireApproval ${ofAgent}`, policy.spec);
  const underPolicy = tightest(level.constraints, policyOverlay);
  const constraints = tightest(underPolicy, agentOverlay);
  const limitOf = (dimension: Dimension): DimensionLimit => {
    const [value, asked] = [constraints[dimension], agent.spec.constraints?.[dimension]];
    const field = `spec.constraints.${dimension}`;
    const isUseless = asked !== undefined && isTighter(dimension, value, asked);
    const withoutEffect = isUseless ? `${field} ${asked} ${ofAgent}` : undefined;
    if (value !== underPolicy[dimension]) return { by: `${field} ${ofAgent}`, isLevel: false, withoutEffect };
    return value === level.constraints[dimension]
      ? { by: `level ${level.name}`, isLevel: true, withoutEffect }
      : { by: `constraints.${dimension} ${ofPolicy}`, isLevel: false, withoutEffect };
  };
  return {
    ...level,
    constraints,
    limits: Object.fromEntries(DIMENSION_NAMES.map((name) => [name, limitOf(name)])) as Record<
      Dimension,
      DimensionLimit
    >,
    approvals: approvalsOf([
      [level.constraints, `level ${level.name}`],
      [policyOverlay, `constraints.requireApproval ${ofPolicy}`],
      [agentOverlay, `spec.constraints.requireApproval ${ofAgent}`],
    ]),
  };
}

/** `level restricted has network Allowlist`, or `spec.constraints.network of agent "analyst" is None`. */
export function describeLimit({ limits, constraints }: ConstrainedLevel, dimension: Dimension): string {
  const { by, isLevel, withoutEffect } = limits[dimension];
  const value = constraints[dimension];
  const decided = isLevel ? `${by} has ${dimension} ${value}` : `${by} is ${value}`;
  return withoutEffect === undefined
    ? decided
    : `${decided}; ${withoutEffect} has no effect, because what decides is tighter`;
}

/** What a higher level would allow, where the level decides. */
export function levelHint({ limits }: ConstrainedLevel, dimension: Dimension, hint: string): string {
  return limits[dimension].isLevel ? `; ${hint}` : '';
}

/** A field that is not set restricts nothing. */
function overlay(stated: SubConstraints | undefined, field: string, policy: TrustPolicySpec): Constraints {
  return {
    files: stated?.files ?? 'Full',
    network: stated?.network ?? 'Open',
    git: stated?.git ?? 'Full',
    terminal: stated?.terminal ?? 'Full',
    requireApproval: actionsOf(stated?.requireApproval, field, policy),
  };
}

function approvalsOf(sources: readonly (readonly [Constraints, string])[]): Map<ActionType, string> {
  const approvals = new Map<ActionType, string>();
  for (const [{ requireApproval }, by] of sources) {
    for (const action of requireApproval) if (!approvals.has(action)) approvals.set(action, by);
  }
  return approvals;
}
