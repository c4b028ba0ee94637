import type { BuiltinLevel } from '../v1alpha1/actions.ts';

export const MAX_ACTION_ENTRIES = 100;

/** The values of each dimension that a rule decides by. Each list starts with the tightest. Code is isolated at every level. */
export const DIMENSIONS = {
  files: ['Workspace', 'Project', 'Full'],
  network: ['None', 'Allowlist', 'Open'],
  git: ['LocalOnly', 'ReadAndBranch', 'Full'],
  terminal: ['None', 'RestrictedCommands', 'Full'],
} as const;

export type Dimension = keyof typeof DIMENSIONS;

export const DIMENSION_NAMES = Object.keys(DIMENSIONS) as Dimension[];

/** One value of every dimension that a rule decides by. */
export interface DimensionValues {
  files: (typeof DIMENSIONS.files)[number];
  network: (typeof DIMENSIONS.network)[number];
  git: (typeof DIMENSIONS.git)[number];
  terminal: (typeof DIMENSIONS.terminal)[number];
}

/** What each built-in level allows. */
export const LEVEL_DIMENSIONS: Readonly<Record<BuiltinLevel, DimensionValues>> = {
  sandboxed: { files: 'Workspace', network: 'None', git: 'LocalOnly', terminal: 'None' },
  restricted: { files: 'Project', network: 'Allowlist', git: 'ReadAndBranch', terminal: 'None' },
  standard: { files: 'Project', network: 'Open', git: 'Full', terminal: 'RestrictedCommands' },
  elevated: { files: 'Full', network: 'Open', git: 'Full', terminal: 'Full' },
};

/** Whether the first value allows less than the second one. A value that the dimension does not have is the tightest. */
export function isTighter(dimension: Dimension, one: string, other: string): boolean {
  const order: readonly string[] = DIMENSIONS[dimension];
  return order.indexOf(one) < order.indexOf(other);
}
