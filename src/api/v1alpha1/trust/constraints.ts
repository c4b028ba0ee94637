import { Type, type Static } from 'typebox';
import { ACTION_CATEGORIES, ACTION_TYPES, CUSTOM_ENTRY_PATTERN, MAX_ACTION_LENGTH } from '../actions.ts';
import { DIMENSIONS, MAX_ACTION_ENTRIES } from '../../limits/constraints.ts';
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
