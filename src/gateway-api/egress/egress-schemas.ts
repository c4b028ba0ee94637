import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { Code } from '../../tools/event-schema/parts.ts';
import { AgentName, DeliveryToken } from '../schema-parts.ts';
import { MAX_REPORTED_CONNECTIONS } from './report-limits.ts';

const Host = Type.String({
  pattern: '^[A-Za-z0-9._:-]+$',
  maxLength: 253,
  description: 'A host name, or an IP address without brackets.',
});
const Port = Type.Integer({ minimum: 1, maximum: 65_535 });

export const EgressAuthorizationRequest = Type.Object(
  {
    token: Type.String({
      pattern: '^[A-Za-z0-9_.=-]+$',
      maxLength: 8_192,
      description: 'The token of the pod, or of a gateway, for the audience of the proxy.',
    }),
    deliveryToken: DeliveryToken,
    address: Type.String({ maxLength: 64, description: 'The address of the caller, as the proxy sees it.' }),
    host: Host,
    port: Port,
  },
  { ...closed, description: 'A pod or a gateway asks the egress proxy for a connection.' },
);
export type EgressAuthorizationRequest = Static<typeof EgressAuthorizationRequest>;

export const EgressAuthorization = Type.Object(
  {
    caller: Type.Enum(['Pod', 'Gateway'], {
      description: 'What the token proves: a pod of the agent, or a gateway that executes a call of the agent.',
    }),
    agent: AgentName,
    agentUid: Type.String(),
    namespace: Type.String(),
    session: Type.String(),
    message: Type.String({ description: 'Id of the message that the connection belongs to.' }),
    remainingMs: Type.Integer({ minimum: 0, description: 'Milliseconds until the deadline of the message.' }),
  },
  { ...closed, description: 'The connection is allowed, and belongs to this message.' },
);
export type EgressAuthorization = Static<typeof EgressAuthorization>;

const ConnectionId = Type.String({ pattern: '^[a-z0-9-]+$', maxLength: 64 });

export const EgressReport = Type.Object(
  {
    connections: Type.Array(
      Type.Object(
        {
          id: ConnectionId,
          deliveryToken: DeliveryToken,
          host: Host,
          port: Port,
          bytes: Type.Integer({ minimum: 0, maximum: 1e12, description: 'In both directions, since the last report.' }),
        },
        closed,
      ),
      { maxItems: MAX_REPORTED_CONNECTIONS },
    ),
  },
  { ...closed, description: 'What connections moved, to charge it.' },
);
export type EgressReport = Static<typeof EgressReport>;

export const EgressReportResult = Type.Object(
  {
    ended: Type.Array(
      Type.Object({ id: ConnectionId, code: Code, message: Type.String({ description: 'For the log.' }) }, closed),
    ),
  },
  { ...closed, description: 'The connections that must end.' },
);
export type EgressReportResult = Static<typeof EgressReportResult>;
