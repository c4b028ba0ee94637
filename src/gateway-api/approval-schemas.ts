import { type Static, Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import { AnyJson } from '../tools/event-schema/parts.ts';
import { DeliveryToken } from './schema-parts.ts';

const RequestName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,99}$', description: 'Name of an ApprovalRequest.' });

export const CallApprovalRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    tool: Type.String({ minLength: 1, maxLength: 63, description: 'Name of the tool.' }),
    input: Type.Unsafe<Static<typeof AnyJson>>({ ...AnyJson, description: 'The arguments of the call.' }),
    callKey: Type.String({
      pattern: '^[!-~]{1,1024}$',
      description: 'The idempotency key of the call: equal for each attempt at it.',
    }),
  },
  closed,
);
export type CallApprovalRequest = Static<typeof CallApprovalRequest>;

export const CallApproval = Type.Object(
  {
    request: RequestName,
    decision: Type.Enum(['Pending', 'Approve', 'Deny', 'Expired'], {
      description: 'What was decided about the call; `Expired` after the timeout of the policy.',
    }),
    by: Type.String({ maxLength: 300, description: 'Who decided; empty while the request is pending.' }),
    reason: Type.String({ maxLength: 2_048, description: 'The reason for the decision.' }),
  },
  { ...closed, description: 'The state of a request for an approval.' },
);
export type CallApproval = Static<typeof CallApproval>;

export const UseApprovalRequest = Type.Object(
  { deliveryToken: DeliveryToken, request: RequestName },
  { ...closed, description: 'The approved call starts now. Each attempt at the call needs its own `Idempotency-Key`.' },
);
export type UseApprovalRequest = Static<typeof UseApprovalRequest>;

/** The requests that a message waits for. */
export const ParkedRequests = Type.Array(RequestName, { minItems: 1, maxItems: 16 });
