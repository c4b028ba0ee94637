import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { SessionId, text } from '../../tools/event-schema/parts.ts';
import { AnyObject, DigestText } from '../schema-parts.ts';

export const UserCallRequest = Type.Object(
  {
    tool: text(128, 'Name of a tool that the agent may call.'),
    input: AnyObject,
    session: Type.Optional(SessionId),
  },
  {
    ...closed,
    description:
      'A call of a program of a user. The reply of the message is the result as JSON: `{ok: true, output}`, or `{ok: false, error}`. Without `session` the gateway opens a new session.',
  },
);
export type UserCallRequest = Static<typeof UserCallRequest>;

export const CallableTool = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    inputSchema: AnyObject,
    outputSchema: Type.Optional(AnyObject),
    category: Type.String(),
    action: Type.String(),
    sideEffects: Type.Boolean({ description: 'A call may change something outside of the tool.' }),
    locality: Type.Enum(['Local', 'Brokered']),
    forged: Type.Optional(
      Type.Object(
        {
          digest: DigestText,
          tier: Type.Enum(['Agent', 'Shared']),
          pure: Type.Boolean({ description: 'The output depends on the input alone.' }),
        },
        { ...closed, description: 'Of a forged tool.' },
      ),
    ),
  },
  { ...closed, description: 'A tool that a program of a user may call as the agent.' },
);
export type CallableTool = Static<typeof CallableTool>;
