import { Type, type Static } from 'typebox';
import { closed, count, Text } from '../common.ts';

/** Pairs of one agent. */
export const MAX_USED_TOGETHER = 16;

/** Two forged tools that the agent uses together. Written by the operator only. */
const ToolsUsedTogether = Type.Object(
  {
    tools: Type.Array(Text(63, 'The name that models use.'), {
      minItems: 2,
      maxItems: 2,
      description: 'The two tools.',
    }),
    percent: count(
      10,
      100,
      'Of the tasks that used one of the two tools, the percentage that used both, as a multiple of ten.',
    ),
  },
  closed,
);
export type ToolsUsedTogether = Static<typeof ToolsUsedTogether>;

export const ToolsUsedTogetherList = Type.Array(ToolsUsedTogether, {
  maxItems: MAX_USED_TOGETHER,
  'x-kubernetes-list-type': 'atomic',
  description:
    'Forged tools that the agent used together in at least three tasks that ended well: a search that finds one of them finds the other one too. See docs/reference/discovery.md.',
});
