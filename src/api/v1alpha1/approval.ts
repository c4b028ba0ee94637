import { Type, type Static } from 'typebox';
import { ApprovalSubject, Conditions, ObjectName, ObservedGeneration, RequestNonce, Text, closed } from './common.ts';
import type { Resource } from './common.ts';

export const ApprovalSpec = Type.Object(
  {
    decision: Type.Enum(['Approve', 'Deny', 'Revoke'], {
      description:
        'The decision. `Revoke` withdraws an earlier approval and applies until a new request with a new nonce.',
    }),
    nonce: RequestNonce,
    request: Type.Optional({
      ...ObjectName,
      description: 'The name of the ApprovalRequest that this object decides. Only for human readers.',
    }),
    reason: Type.Optional(Text(2048, 'The reason for the decision.')),
    approvedBy: Type.Object(
      {
        username: Text(253, 'The user name of the caller, as the API server reports it.'),
        uid: Type.Optional(Text(253, 'The UID of the caller, if the API server reports one.')),
      },
      {
        ...closed,
        description: 'The approver. The API server rejects the object unless this is the user who creates it.',
      },
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
