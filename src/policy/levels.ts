import { BUILTIN_LEVELS, GRANTABLE_CATEGORIES, expandActions } from '../api/v1alpha1/actions.ts';
import type { BuiltinLevel } from '../api/v1alpha1/actions.ts';
import type { ForgeMode } from '../api/v1alpha1/common.ts';
import { DIMENSIONS } from '../api/limits/constraints.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../lib/errors.ts';
import { LEVELS, rankOf } from './tables.ts';
import type { Constraints } from './tables.ts';
import type { ActionType, ToolCategory } from './types.ts';

/** The permissions of an effective level, custom levels included. */
export interface LevelProfile {
  name: string;
  rank: number;
  categories: ReadonlySet<ToolCategory>;
  /** Categories that also open when the agent has a grant for what their tools do. */
  grantable: ReadonlySet<ToolCategory>;
  constraints: Constraints;
  forgeModes: readonly ForgeMode[];
  forgeApis: boolean;
}

/** The ceiling of a policy that sets none. Level elevated must be set explicitly. */
const DEFAULT_CEILING: BuiltinLevel = 'standard';

/**
 * The lower of the earned level and the ceiling, dimension by dimension: for two custom levels without an order, only what both
 * allow. Throws TEMPER_MANIFEST_INVALID for an undefined level.
 */
export function effectiveLevel(earned: string, policy: TrustPolicySpec): LevelProfile {
  const earnedProfile = profileOf(earned, policy);
  const ceiling = profileOf(policy.level?.ceiling ?? DEFAULT_CEILING, policy);
  const lower = isLower(ceiling, earnedProfile) ? ceiling : earnedProfile;
  return {
    name: lower.name,
    rank: lower.rank,
    categories: intersection(earnedProfile.categories, ceiling.categories),
    grantable: intersection(earnedProfile.grantable, ceiling.grantable),
    constraints: tightest(earnedProfile.constraints, ceiling.constraints),
    forgeModes: earnedProfile.forgeModes.filter((mode) => ceiling.forgeModes.includes(mode)),
    forgeApis: earnedProfile.forgeApis && ceiling.forgeApis,
  };
}

function isLower(a: LevelProfile, b: LevelProfile): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank;
  return !isBuiltin(a.name) && isBuiltin(b.name);
}

function isBuiltin(name: string): name is BuiltinLevel {
  return (BUILTIN_LEVELS as readonly string[]).includes(name);
}

function profileOf(name: string, policy: TrustPolicySpec): LevelProfile {
  if (isBuiltin(name)) return builtinProfile(name);
  const custom = policy.levels?.find((level) => level.name === name);
  if (custom === undefined) {
    throw new TemperError(
      'TEMPER_MANIFEST_INVALID',
      `access level "${name}" does not exist; use ${BUILTIN_LEVELS.join(', ')} or define it in spec.levels`,
    );
  }
  const base = builtinProfile(custom.base);
  const listed = new Set(custom.categories);
  return {
    ...base,
    name,
    categories: intersection(base.categories, listed),
    grantable: intersection(base.grantable, listed),
    constraints: tightest(base.constraints, {
      ...custom.constraints,
      requireApproval: actionsOf(custom.constraints.requireApproval, 'levels.constraints.requireApproval', policy),
    }),
  };
}

function builtinProfile(name: BuiltinLevel): LevelProfile {
  const { categories, ...table } = LEVELS[name];
  return { ...table, name, rank: rankOf(name), categories: new Set(categories), grantable: GRANTABLE_CATEGORIES };
}

/** In each dimension the tighter of two values, and the actions that need an approver by either. */
export function tightest(a: Constraints, b: Constraints): Constraints {
  return {
    files: lower(DIMENSIONS.files, a.files, b.files),
    network: lower(DIMENSIONS.network, a.network, b.network),
    git: lower(DIMENSIONS.git, a.git, b.git),
    terminal: lower(DIMENSIONS.terminal, a.terminal, b.terminal),
    requireApproval: [...new Set([...a.requireApproval, ...b.requireApproval])],
  };
}

function intersection<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): ReadonlySet<T> {
  return new Set([...a].filter((item) => b.has(item)));
}

/** The value that comes first in `order`. A value that is not in it counts as the tightest. */
function lower<T extends string>(order: readonly [T, ...T[]], a: T, b: T): T {
  return order[Math.min(order.indexOf(a), order.indexOf(b))] ?? order[0];
}

/** The actions that the entries name. An unknown entry is an error, so that a typo never disables a rule. */
export function actionsOf(
  entries: readonly string[] | undefined,
  field: string,
  { actions: registered = [] }: Pick<TrustPolicySpec, 'actions'>,
): ActionType[] {
  const custom = registered.map(({ name }) => name);
  return (entries ?? []).flatMap((entry) => {
    const actions = expandActions(entry, custom);
    if (actions.length === 0) {
      throw new TemperError(
        'TEMPER_MANIFEST_INVALID',
        `${field} "${entry}" is not a registered action type or category`,
      );
    }
    return actions;
  });
}
