import { Type } from 'typebox';
import {
  ACTION_TYPES,
  CUSTOM_ACTION_PATTERN,
  DEFAULT_BASE_ACTION,
  DEFAULT_CUSTOM_RISK,
  MAX_ACTION_LENGTH,
  RISKS,
} from '../actions.ts';
import { closed, patternsOf } from '../common.ts';

const CustomAction = Type.Object(
  {
    name: Type.String({
      'x-temper-form': 'a domain, a slash, a category and an action, such as example.com/crm:refund',
      pattern: `^${CUSTOM_ACTION_PATTERN}$`,
      maxLength: MAX_ACTION_LENGTH,
      description: 'The action type, `domain/category:action`.',
    }),
    base: Type.Optional(
      Type.Enum([...ACTION_TYPES], {
        default: DEFAULT_BASE_ACTION,
        description:
          'The built-in action type whose rules apply too. A custom action is never permitted where its base is denied.',
      }),
    ),
    risk: Type.Optional(
      Type.Enum([...RISKS], {
        default: DEFAULT_CUSTOM_RISK,
        description: 'The risk of a call, at least that of the base.',
      }),
    ),
    tools: Type.Optional({
      ...patternsOf('Patterns for tools that perform this action beside their own one.'),
      default: [],
    }),
  },
  closed,
);

export const CustomActions = Type.Array(CustomAction, {
  maxItems: 64,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  description: 'Custom action types. A tool with a custom action type that its policy does not register is denied.',
});
