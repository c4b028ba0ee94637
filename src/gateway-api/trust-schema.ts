import { Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import type { TrustExplanation } from '../policy/trust/explain.ts';

const Requirement = Type.Object(
  {
    rule: Type.Enum(['minTasks', 'minRatings', 'minQuality', 'score', 'activeFor', 'cleanFor', 'coolDown']),
    met: Type.Boolean(),
    required: Type.String(),
    actual: Type.String(),
    dueAt: Type.Optional(Type.Number({ description: 'When time alone meets it, in epoch milliseconds.' })),
  },
  closed,
);

const Term = Type.Object(
  {
    name: Type.Enum(['quality', 'completion', 'reliability', 'experience']),
    value: Type.Number({ description: '0 to 1; 0 without data.' }),
    weight: Type.Number({ description: 'Percent.' }),
    source: Type.String(),
  },
  closed,
);

const Track = Type.Object(
  {
    category: Type.Optional(Type.String({ description: 'Absent: all requests without a category of their own.' })),
    level: Type.String(),
    score: Type.Optional(Type.Number({ description: '0 to 1, with strategy type Weighted.' })),
    terms: Type.Optional(Type.Array(Term)),
    next: Type.Optional(
      Type.Object(
        { level: Type.String(), needsApproval: Type.Boolean(), requirements: Type.Array(Requirement) },
        { ...closed, description: 'Absent at the top, and with strategy Disabled.' },
      ),
    ),
  },
  closed,
);

const Explanation = Type.Object(
  {
    strategy: Type.String(),
    level: Type.String(),
    initial: Type.String(),
    ceiling: Type.String(),
    isCurrent: Type.Boolean({ description: 'The recorded level belongs to the current specs.' }),
    since: Type.Optional(Type.String()),
    reason: Type.Optional(Type.String()),
    approvals: Type.Array(
      Type.Object(
        {
          level: Type.String(),
          category: Type.Optional(Type.String()),
          approval: Type.String(),
          since: Type.String(),
        },
        closed,
      ),
    ),
    tasks: Type.Object(
      {
        ended: Type.Number(),
        completed: Type.Number(),
        rated: Type.Number(),
        quality: Type.Optional(Type.Number({ description: 'Mean rating, 0 to 10.' })),
        lastTaskAt: Type.Optional(Type.String()),
        countedFrom: Type.Optional(Type.String({ description: 'Only later tasks count.' })),
      },
      closed,
    ),
    tracks: Type.Array(Track),
    lowering: Type.Array(
      Type.Object(
        {
          rule: Type.String(),
          lowers: Type.Boolean(),
          detail: Type.String(),
          at: Type.Optional(Type.String({ description: 'When time alone may lower the level.' })),
        },
        closed,
      ),
    ),
    nextEvaluationAt: Type.Optional(Type.String({ description: 'When time alone may change the level.' })),
  },
  closed,
);

export type TrustReport = TrustExplanation & { readonly agent: string; readonly policy: string };

export const TrustReport = Type.Unsafe<TrustReport>(
  Type.Object(
    { agent: Type.String(), policy: Type.String(), ...Explanation.properties },
    { ...closed, description: 'The level of an agent and the rules that decide about it.' },
  ),
);
