import { Type } from 'typebox';
import { closed, count, patternsOf } from '../common.ts';

export const ChildLimits = Type.Object(
  {
    perAgent: Type.Optional(count(0, 100, 'Maximum number of living children of one agent.', 10)),
    total: Type.Optional(count(0, 10_000, 'Maximum number of child agents under this policy.', 100)),
    generations: Type.Optional(
      count(1, 5, 'Maximum number of generations, the agent without a parent included. 1 permits no children.', 5),
    ),
    templates: Type.Optional(
      patternsOf(
        'Patterns for the names of the templates from which agents may start children. When absent, all agents with `children.template`.',
      ),
    ),
  },
  { ...closed, description: 'The limits for agents that start child agents.' },
);
