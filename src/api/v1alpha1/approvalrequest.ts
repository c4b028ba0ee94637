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
    type: Type.Enum(['PromoteTool', 'RaiseTrust', 'ToolCall'], { description: 'What waits for a person.' }),
    agent: Type.Object(
      { name: ObjectName, uid: Uid },
      { ...closed, description: 'The agent on whose behalf the question is asked.' },
    ),
    nonce: RequestNonce,
    summary: Text(1024, 'One sentence: what is asked, about what.'),
    risk: Type.Enum(['low', 'medium', 'high', 'critical'], { description: 'The risk of saying yes.' }),
    tool: Type.Optional(Text(63, 'The name of the tool, for a list of requests.')),
    from: Type.Optional(Text(63, 'The tier or level there is now, for a list of requests.')),
    to: Type.Optional(Text(63, 'The tier or level asked for, for a list of requests.')),
    arguments: Type.Optional(Text(16_384, 'JSON text: the arguments of the call, redacted. Only for type `ToolCall`.')),
    subject: ApprovalSubject,
  },
  closed,
);
export type ApprovalRequestSpec = Static<typeof ApprovalRequestSpec>;

export const ApprovalRequestStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    decision: Type.Optional(
      Type.Enum(['Approve', 'Deny', 'Revoke', 'Expired'], { description: 'The answer. Absent while it waits.' }),
    ),
    decidedBy: Type.Optional(Text(253, 'Who decided.')),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type ApprovalRequestStatus = Static<typeof ApprovalRequestStatus>;

export type ApprovalRequest = Resource<'ApprovalRequest', ApprovalRequestSpec, ApprovalRequestStatus>;
