import { BUILTIN_LEVELS, builtInRisk, FORGE_MODES, LEVEL_CATEGORIES, expandActions } from '../api/v1alpha1/actions.ts';
import type { BuiltinLevel } from '../api/v1alpha1/actions.ts';
import type { ForgeMode } from '../api/v1alpha1/common.ts';
import type { ActionType, AutonomyPreset, Risk, ToolCategory } from './types.ts';

/** The constants of the permission model. The decisions are in the rules. */

/** Actions that no policy, level or approver can allow to an agent. */
export const ALWAYS_DENIED: ReadonlySet<ActionType> = new Set(['deploy:production', 'db:admin', 'org:fire']);

/** An action that is not built in has high risk. */
export function riskOf(action: ActionType): Risk {
  return builtInRisk(action) ?? 'high';
}

export const FILE_SCOPES = ['Workspace', 'Project', 'Full'] as const;
export const NETWORK_MODES = ['None', 'Allowlist', 'Open'] as const;
export const GIT_MODES = ['LocalOnly', 'ReadAndBranch', 'Full'] as const;
export const TERMINAL_MODES = ['None', 'RestrictedCommands', 'Full'] as const;

/** The dimensions of a level that a rule decides by. Each list of values starts with the tightest. Code is isolated at every level. */
export interface Constraints {
  files: (typeof FILE_SCOPES)[number];
  network: (typeof NETWORK_MODES)[number];
  git: (typeof GIT_MODES)[number];
  terminal: (typeof TERMINAL_MODES)[number];
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
    constraints: constraints('Workspace', 'None', 'LocalOnly', 'None'),
    forgeModes: ['Compose'],
    forgeApis: false,
  },
  restricted: {
    categories: LEVEL_CATEGORIES.restricted,
    constraints: constraints('Project', 'Allowlist', 'ReadAndBranch', 'None', [
      ...expandActions('deploy'),
      'db:mutate',
    ]),
    forgeModes: FORGE_MODES,
    forgeApis: false,
  },
  standard: {
    categories: LEVEL_CATEGORIES.standard,
    constraints: constraints('Project', 'Open', 'Full', 'RestrictedCommands'),
    forgeModes: FORGE_MODES,
    forgeApis: true,
  },
  elevated: {
    categories: LEVEL_CATEGORIES.elevated,
    constraints: constraints('Full', 'Open', 'Full', 'Full'),
    forgeModes: FORGE_MODES,
    forgeApis: true,
  },
};

function constraints(
  files: Constraints['files'],
  network: Constraints['network'],
  git: Constraints['git'],
  terminal: Constraints['terminal'],
  requireApproval: readonly ActionType[] = [],
): Constraints {
  return { files, network, git, terminal, requireApproval };
}

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
