import { Type, type Static } from 'typebox';
import { atomicListOf, closed, ObjectName, Text } from '../common.ts';

const MAX_SKILLS = 16;
const MAX_CALLERS = 16;

const Skill = Type.Object(
  {
    id: Type.String({
      'x-temper-form': 'an id of letters, digits, dots, dashes and underscores',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
      maxLength: 63,
      description: 'The id of the skill, unique within the agent.',
    }),
    name: Text(128, 'The name of the skill, for human readers.'),
    description: Text(1024, 'What the agent does with the skill.'),
    tags: Type.Optional(atomicListOf(Text(63, 'A keyword.'), 16, 'Keywords of the skill.')),
    examples: Type.Optional(atomicListOf(Text(1024, 'A message.'), 8, 'Messages that the skill is for.')),
  },
  closed,
);

const Caller = Type.Object(
  {
    serviceAccount: { ...ObjectName, description: 'The name of the ServiceAccount.' },
    namespace: Type.Optional({
      ...ObjectName,
      description: 'The namespace of the ServiceAccount. Defaults to the namespace of the agent.',
    }),
  },
  closed,
);

export const A2aSettings = Type.Object(
  {
    enabled: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Whether callers reach the agent over A2A: at the gateway, and with `temper run --serve --a2a PORT`.',
      }),
    ),
    description: Type.Optional(
      Text(1024, 'What the agent does, for its callers. Defaults to `spec.description`, then to its name.'),
    ),
    skills: Type.Optional(
      Type.Array(Skill, {
        maxItems: MAX_SKILLS,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['id'],
        description:
          'The skills on the agent card. Defaults to one skill with the name and the description of the agent. They grant nothing.',
      }),
    ),
    callers: Type.Optional(
      atomicListOf(
        Caller,
        MAX_CALLERS,
        'The ServiceAccounts that may call the agent, with tokens of the audience `temper-a2a`. No other caller reaches it.',
      ),
    ),
  },
  {
    ...closed,
    description:
      'Makes the agent available to agents and programs elsewhere over A2A, the Agent2Agent protocol. Child agents are never available.',
  },
);
export type A2aSettings = Static<typeof A2aSettings>;
