import { BUILTIN_LEVELS, builtInRisk, FORGE_MODES, LEVEL_CATEGORIES, expandActions } from '../api/v1alpha1/actions.ts';
import type { BuiltinLevel } from '../api/v1alpha1/actions.ts';
import type { ForgeMode } from '../api/v1alpha1/common.ts';
import { LEVEL_DIMENSIONS } from '../api/limits/constraints.ts';
import type { DimensionValues } from '../api/limits/constraints.ts';
import type { ActionType, AutonomyPreset, Risk, ToolCategory } from './types.ts';

/** The constants of the permission model. The decisions are in the rules. */

/** Actions that no policy, level or approver can allow to an agent. */
export const ALWAYS_DENIED: ReadonlySet<ActionType> = new Set(['deploy:production', 'db:admin', 'org:fire']);

/** An action that is not built in has high risk. */
export function riskOf(action: ActionType): Risk {
  return builtInRisk(action) ?? 'high';
}

/** The dimensions of a level that a rule decides by. Code is isolated at every level. */
export interface Constraints extends DimensionValues {
  requireApproval: readonly ActionType[];
}

export interface LevelTable {
  categories: readonly ToolCategory[];
  constraints: Constraints;
  forgeModes: readonly ForgeMode[];
  /** May a forged tool ask for host functions at all? The policy's ceiling still applies. */
  forgeApis: boolean;
}

export const LEVELS: Readonly<Record<BuiltinLevel, LevelTable>> = {
  sandboxed: {
    categories: LEVEL_CATEGORIES.sandboxed,
    constraints: { ...LEVEL_DIMENSIONS.sandboxed, requireApproval: [] },
    forgeModes: ['Compose'],
    forgeApis: false,
  },
  restricted: {
    categories: LEVEL_CATEGORIES.restricted,
    constraints: {
      ...LEVEL_DIMENSIONS.restricted,
      requireApproval: [...expandActions('deploy'), 'db:mutate'],
    },
    forgeModes: FORGE_MODES,
    forgeApis: false,
  },
  standard: {
    categories: LEVEL_CATEGORIES.standard,
    constraints: { ...LEVEL_DIMENSIONS.standard, requireApproval: [] },
    forgeModes: FORGE_MODES,
    forgeApis: true,
  },
  elevated: {
    categories: LEVEL_CATEGORIES.elevated,
    constraints: { ...LEVEL_DIMENSIONS.elevated, requireApproval: [] },
    forgeModes: FORGE_MODES,
    forgeApis: true,
  },
};

/** sandboxed 0 … elevated 3. */
export function rankOf(level: BuiltinLevel): number {
  return BUILTIN_LEVELS.indexOf(level);
}

/** Loosest first. */
export const AUTONOMY_PRESETS: readonly AutonomyPreset[] = ['Full', 'Semi', 'Supervised', 'Locked'];

const EVERY_ACTION = 'all';

/** Actions that run without approval, by preset. All others wait for an approver. */
const AUTOMATIC: Readonly<Record<AutonomyPreset, readonly string[]>> = {
  Full: [EVERY_ACTION],
  Semi: ['code', 'test', 'docs', 'vcs', 'comms:internal', 'db:query', 'memory:read'],
  Supervised: ['code:read', 'vcs:read', 'test:run', 'db:query', 'memory:read'],
  Locked: [],
};

/** The actions that run without approval under a preset; undefined means all, custom ones too. */
export function automaticActions(preset: AutonomyPreset): ReadonlySet<ActionType> | undefined {
  const entries = AUTOMATIC[preset];
  return entries.includes(EVERY_ACTION) ? undefined : new Set(entries.flatMap((entry) => expandActions(entry)));
}

/** Limits of a forged tool for fields that the policy does not set. */
export const FORGE_DEFAULTS = {
  durationMilliseconds: 5_000,
  memoryBytes: 128 * 1024 * 1024,
  sessionTools: 10,
  agentTools: 50,
  minTestCases: 1,
} as const;
