import { Type, type Static } from 'typebox';
import { ApprovalSubject, Conditions, ObjectName, ObservedGeneration, RequestNonce, Text, closed } from './common.ts';
import type { Resource } from './common.ts';

export const ApprovalSpec = Type.Object(
  {
    decision: Type.Enum(['Approve', 'Deny', 'Revoke'], {
      description: 'The answer. `Revoke` takes an earlier yes back and holds until a new request with a new nonce.',
    }),
    nonce: RequestNonce,
    request: Type.Optional({
      ...ObjectName,
      description: 'The ApprovalRequest that is answered, for people who read it later.',
    }),
    reason: Type.Optional(Text(2048, 'Why, for the record.')),
    approvedBy: Type.Object(
      {
        username: Text(253, 'The user as the API server names the caller.'),
        uid: Type.Optional(Text(253, 'The uid of the user, where the API server knows one.')),
      },
      { ...closed, description: 'Who decides. Refused unless it is the caller.' },
    ),
    subject: ApprovalSubject,
  },
  closed,
);
export type ApprovalSpec = Static<typeof ApprovalSpec>;

export const ApprovalStatus = Type.Object(
  { observedGeneration: Type.Optional(ObservedGeneration), conditions: Type.Optional(Conditions) },
  closed,
);
export type ApprovalStatus = Static<typeof ApprovalStatus>;

export type Approval = Resource<'Approval', ApprovalSpec, ApprovalStatus>;
