import { BUILTIN_LEVELS, expandActions } from '../api/v1alpha1/actions.ts';
import type { BuiltinLevel } from '../api/v1alpha1/actions.ts';
import type { ForgeMode } from '../api/v1alpha1/common.ts';
import type { SubConstraints, TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../lib/errors.ts';
import { CODE_MODES, FILE_SCOPES, GIT_MODES, LEVELS, NETWORK_MODES, TERMINAL_MODES, rankOf } from './tables.ts';
import type { Constraints } from './tables.ts';
import type { ActionType, ToolCategory } from './types.ts';

/** What the effective level opens, custom levels and the policy's overlay included. */
export interface LevelProfile {
  name: string;
  rank: number;
  categories: ReadonlySet<ToolCategory>;
  constraints: Constraints;
  forgeModes: readonly ForgeMode[];
  forgeApis: boolean;
}

/** Where a policy sets no ceiling. Elevated needs a person, so it is never the silent one. */
const DEFAULT_CEILING: BuiltinLevel = 'standard';

/**
 * The lower of the earned level and the ceiling, dimension by dimension, so that two custom levels that do not compare
 * still open only what both open. Throws TEMPER_MANIFEST_INVALID for a level nobody defines.
 */
export function effectiveLevel(earned: string, policy: TrustPolicySpec): LevelProfile {
  const own = profileOf(earned, policy);
  const ceiling = profileOf(policy.level?.ceiling ?? DEFAULT_CEILING, policy);
  const lower = isLower(ceiling, own) ? ceiling : own;
  const constraints = tighter(tighter(own.constraints, ceiling.constraints), overlay(policy.constraints));
  return {
    name: lower.name,
    rank: lower.rank,
    categories: inBoth(own.categories, ceiling.categories),
    constraints,
    forgeModes: own.forgeModes.filter((mode) => ceiling.forgeModes.includes(mode)),
    forgeApis: own.forgeApis && ceiling.forgeApis,
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
    categories: inBoth(base.categories, listed),
    constraints: tighter(base.constraints, {
      ...custom.constraints,
      requireApproval: actionsOf(custom.constraints.requireApproval, 'levels.constraints.requireApproval'),
    }),
  };
}

function builtinProfile(name: BuiltinLevel): LevelProfile {
  const { categories, ...table } = LEVELS[name];
  return { ...table, name, rank: rankOf(name), categories: new Set(categories) };
}

/** The policy's overlay speaks only about the fields it sets. */
function overlay(given: SubConstraints | undefined): Constraints {
  return {
    files: given?.files ?? 'Full',
    network: given?.network ?? 'Open',
    git: given?.git ?? 'Full',
    code: given?.code ?? 'Direct',
    terminal: given?.terminal ?? 'Full',
    requireApproval: actionsOf(given?.requireApproval, 'constraints.requireApproval'),
  };
}

function tighter(a: Constraints, b: Constraints): Constraints {
  return {
    files: lower(FILE_SCOPES, a.files, b.files),
    network: lower(NETWORK_MODES, a.network, b.network),
    git: lower(GIT_MODES, a.git, b.git),
    code: lower(CODE_MODES, a.code, b.code),
    terminal: lower(TERMINAL_MODES, a.terminal, b.terminal),
    requireApproval: [...new Set([...a.requireApproval, ...b.requireApproval])],
  };
}

function inBoth<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): ReadonlySet<T> {
  return new Set([...a].filter((item) => b.has(item)));
}

/** A value that is missing, or not in the order, counts as the tightest. */
function lower<T extends string>(order: readonly [T, ...T[]], a: T, b: T): T {
  return order[Math.min(order.indexOf(a), order.indexOf(b))] ?? order[0];
}

/** The actions entries stand for. An entry that stands for nothing is an error: a typo must never mean "no rule". */
export function actionsOf(entries: readonly string[] | undefined, field: string): ActionType[] {
  return (entries ?? []).flatMap((entry) => {
    const actions = expandActions(entry);
    if (actions.length === 0) {
      throw new TemperError('TEMPER_MANIFEST_INVALID', `${field} "${entry}" is no registered action type or category`);
    }
    return actions;
  });
}
