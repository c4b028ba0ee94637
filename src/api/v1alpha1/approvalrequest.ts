import { Type, type Static } from 'typebox';
import {
  ApprovalSubject,
  Conditions,
  ObservedGeneration,
  RequestNonce,
  Text,
  Uid,
  closed,
  ObjectName,
} from './common.ts';
import type { Resource } from './common.ts';

export const ApprovalRequestSpec = Type.Object(
  {
    type: Type.Enum(['PromoteTool', 'RaiseTrust', 'ToolCall'], {
      description: 'The type of decision that an approver has to make.',
    }),
    agent: Type.Object(
      { name: ObjectName, uid: Uid },
      { ...closed, description: 'The agent that needs the decision.' },
    ),
    nonce: RequestNonce,
    summary: Text(1024, 'One sentence that describes the request.'),
    risk: Type.Enum(['low', 'medium', 'high', 'critical'], { description: 'The risk of approving the request.' }),
    tool: Type.Optional(Text(63, 'The name of the tool. Shown in lists of requests.')),
    from: Type.Optional(Text(63, 'The current tier or level. Shown in lists of requests.')),
    to: Type.Optional(Text(63, 'The requested tier or level. Shown in lists of requests.')),
    arguments: Type.Optional(
      Text(
        16_384,
        'The arguments of the call as JSON text, without secrets. What is cut states its whole length. Only for type `ToolCall`.',
      ),
    ),
    subject: ApprovalSubject,
  },
  closed,
);
export type ApprovalRequestSpec = Static<typeof ApprovalRequestSpec>;

export const ApprovalRequestStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    decision: Type.Optional(
      Type.Enum(['Approve', 'Deny', 'Revoke', 'Expired'], {
        description: 'The decision. Absent while the request is pending.',
      }),
    ),
    decidedBy: Type.Optional(Text(253, 'The user who made the decision.')),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type ApprovalRequestStatus = Static<typeof ApprovalRequestStatus>;

export type ApprovalRequest = Resource<'ApprovalRequest', ApprovalRequestSpec, ApprovalRequestStatus>;
