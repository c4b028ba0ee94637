import { Type, type Static } from 'typebox';
import {
  ACTION_CATEGORIES,
  ACTION_TYPES,
  type BuiltinLevel,
  CUSTOM_ENTRY_PATTERN,
  MAX_ACTION_LENGTH,
} from '../actions.ts';
import { atomicListOf, closed } from '../common.ts';

const ActionEntry = Type.String({
  minLength: 1,
  maxLength: MAX_ACTION_LENGTH,
  description:
    'An action type as `category:action`, or a category, which covers all its actions: a built-in one, or one of `actions` of the TrustPolicy.',
  'x-temper-enum': [...ACTION_TYPES, ...ACTION_CATEGORIES],
  'x-temper-pattern': `^(${[...ACTION_TYPES, ...ACTION_CATEGORIES].join('|')}|${CUSTOM_ENTRY_PATTERN})$`,
});

export const actionEntriesOf = (description: string) => atomicListOf(ActionEntry, MAX_ACTION_ENTRIES, description);

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

/** The six dimensions that an access level limits. */
export const SubConstraints = Type.Object(
  {
    files: Type.Optional(
      Type.Enum([...DIMENSIONS.files], {
        description: 'File access: the workspace, the project, or all files.',
      }),
    ),
    network: Type.Optional(
      Type.Enum([...DIMENSIONS.network], {
        description: 'Network access: none, the granted hosts, or all hosts that `egress.allow` permits.',
      }),
    ),
    git: Type.Optional(
      Type.Enum([...DIMENSIONS.git], {
        description: 'Git access: local only, read and create branches, or all operations including push.',
      }),
    ),
    code: Type.Optional(
      Type.Enum(['Isolated'], {
        description: 'Code execution: in the sandbox, at every level. There is no other value.',
      }),
    ),
    terminal: Type.Optional(
      Type.Enum([...DIMENSIONS.terminal], {
        description: 'Terminal access: none, the granted programs, or all programs.',
      }),
    ),
    requireApproval: Type.Optional(actionEntriesOf('Actions that need the decision of an approver.')),
  },
  closed,
);
export type SubConstraints = Static<typeof SubConstraints>;
