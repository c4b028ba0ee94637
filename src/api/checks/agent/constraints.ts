import type { FieldPath, Finding, ValidPart } from '../../findings.ts';
import { type BuiltinLevel, DEFAULT_LEVELS, isCustomEntry } from '../../v1alpha1/actions.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';
import { DIMENSION_NAMES, type Dimension, LEVEL_DIMENSIONS, isTighter } from '../../limits/constraints.ts';
import type { TrustPolicySpec } from '../../v1alpha1/trustpolicy.ts';
import { ceilingBase } from '../levels.ts';
import { checkActions, present, quoted } from '../shared.ts';

type Spec = ValidPart<AgentSpec>;
type Policy = ValidPart<TrustPolicySpec>;

/** A constraint of an agent that is looser than everything its policy can give. */
export interface LooserConstraint {
  path: FieldPath;
  value: string;
  /** What the policy gives at most: `constraints.network is None`. */
  why: string;
}

/** Compares with the ceiling of the policy: below it a value has no effect now, and an effect once the agent has risen. */
export function looserConstraints({ constraints = {} }: Spec, policy: Policy): LooserConstraint[] {
  return DIMENSION_NAMES.flatMap((dimension): LooserConstraint[] => {
    const [value, most] = [constraints[dimension], mostOf(dimension, policy)];
    if (value === undefined || most === undefined || !isTighter(dimension, most.value, value)) return [];
    return [{ path: ['spec', 'constraints', dimension], value, why: most.why }];
  });
}

interface Most {
  value: string;
  why: string;
}

/** The tightest of what the ceiling and the policy allow; undefined when the ceiling does not exist. */
function mostOf(dimension: Dimension, policy: Policy): Most | undefined {
  const ceiling = policy.level?.ceiling ?? DEFAULT_LEVELS.ceiling;
  const base = ceilingBase(policy);
  if (base === undefined) return undefined;
  const own = present(policy.levels).find(({ name }) => name === ceiling)?.constraints?.[dimension];
  const ofPolicy = policy.constraints?.[dimension];
  const ofLevel = (value: string): Most => ({ value, why: `its ceiling ${ceiling} has ${dimension} ${value}` });
  const limits = [
    ofLevel(LEVEL_DIMENSIONS[base as BuiltinLevel][dimension]),
    ...(own === undefined ? [] : [ofLevel(own)]),
    ...(ofPolicy === undefined ? [] : [{ value: ofPolicy, why: `constraints.${dimension} is ${ofPolicy}` }]),
  ];
  return limits.reduce((most, limit) => (isTighter(dimension, limit.value, most.value) ? limit : most));
}

const APPROVALS: FieldPath = ['spec', 'constraints', 'requireApproval'];

/** Whether a custom action exists depends on the policy of the agent. */
export function builtInApprovalsExist({ constraints }: Spec): Finding[] {
  const entries = constraints?.requireApproval?.map((entry) =>
    entry !== undefined && isCustomEntry(entry) ? undefined : entry,
  );
  return checkActions(entries, APPROVALS, []);
}

/** An entry that the policy does not register would have no effect. */
export function customApprovalsExist({ constraints }: Spec, policy: Policy): Finding[] {
  const custom = present(policy.actions).flatMap(({ name }) => name ?? []);
  const entries = constraints?.requireApproval?.map((entry) =>
    entry !== undefined && isCustomEntry(entry) ? entry : undefined,
  );
  return checkActions(entries, APPROVALS, custom);
}

/** Grants that the agent's own constraints take away again. */
export function constrainedGrants({ constraints, grants }: Spec): Finding[] {
  const taken: [field: 'network' | 'shell', dimension: Dimension, isTaken: boolean][] = [
    ['network', 'network', constraints?.network === 'None'],
    ['shell', 'terminal', constraints?.terminal === 'None'],
  ];
  return taken.flatMap(([field, dimension, isTaken]): Finding[] => {
    if (!isTaken || present(grants?.[field]).length === 0) return [];
    return [
      {
        path: ['spec', 'grants', field],
        rule: 'grant-constrained',
        message: `spec.grants.${field} has no effect: spec.constraints.${dimension} is ${quoted('None')}`,
        fix: 'remove one of the two',
      },
    ];
  });
}
