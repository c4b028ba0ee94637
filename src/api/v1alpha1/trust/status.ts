import { Type, type Static } from 'typebox';
import { TOOL_CATEGORIES } from '../actions.ts';
import { LevelName, ObjectName, ObservedGeneration, Text, Uid, closed } from '../common.ts';

const Time = (description: string) => Type.String({ format: 'date-time', maxLength: 64, description });

const earned = {
  level: Type.Optional({
    ...LevelName,
    description: 'The level that the agent earned or was lowered to. Absent: the initial level of the policy.',
  }),
  since: Type.Optional(Time('The time of the last change of the level, in RFC 3339 format.')),
  reason: Type.Optional(Text(512, 'Why the level last changed.')),
};

const CategoryTrust = Type.Object(
  {
    category: Type.Enum([...TOOL_CATEGORIES], { description: 'The tool category.' }),
    ...earned,
  },
  closed,
);
export type CategoryTrust = Static<typeof CategoryTrust>;

const ApprovedLevel = Type.Object(
  {
    level: { ...LevelName, description: 'The approved level.' },
    category: Type.Optional(
      Type.Enum([...TOOL_CATEGORIES], { description: 'The tool category. Absent: all requests without a category.' }),
    ),
    approval: { ...ObjectName, description: 'The name of the Approval.' },
    since: Time('The time when the operator applied it, in RFC 3339 format.'),
  },
  closed,
);
export type ApprovedLevel = Static<typeof ApprovedLevel>;

/** What the rules of trust know of one agent. Written by the operator only. */
export const TrustStatus = Type.Object(
  {
    agentUid: { ...Uid, description: 'The UID of the Agent that the levels belong to.' },
    agentGeneration: { ...ObservedGeneration, description: 'The metadata.generation of the Agent.' },
    policyUid: { ...Uid, description: 'The UID of the TrustPolicy that the levels belong to.' },
    policyGeneration: { ...ObservedGeneration, description: 'The metadata.generation of the TrustPolicy.' },
    ...earned,
    loweredAt: Type.Optional(
      Time('The time when the agent was last lowered, in RFC 3339 format. Only later tasks count for a rise.'),
    ),
    verifiedAt: Type.Optional(Time('The time of the last quality check, in RFC 3339 format.')),
    lastTaskAt: Type.Optional(Time('The time of the last known task, in RFC 3339 format, to about a day.')),
    approved: Type.Optional(
      Type.Array(ApprovedLevel, {
        maxItems: 1 + TOOL_CATEGORIES.length,
        'x-kubernetes-list-type': 'atomic',
        description:
          'Levels that an approver granted, for exactly these generations. A change of either spec withdraws them.',
      }),
    ),
    categories: Type.Optional(
      Type.Array(CategoryTrust, {
        maxItems: TOOL_CATEGORIES.length,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['category'],
        description: 'The levels of single tool categories, with strategy type `PerCategory`.',
      }),
    ),
  },
  {
    ...closed,
    description:
      'How the agent came to its level. The gateway uses it only for the generations that it names; otherwise the agent has the lower of the initial level and the one recorded here.',
  },
);
export type TrustStatus = Static<typeof TrustStatus>;
