import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { AnyJson } from '../../tools/event-schema/parts.ts';
import { AgentName, DeliveryToken } from '../schema-parts.ts';

const WaitSeconds = Type.Number({ minimum: 0, maximum: 25, description: 'Seconds to wait for the operator.' });

export const SpawnRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    input: Type.Unsafe<Static<typeof AnyJson>>({ ...AnyJson, description: 'The arguments of `agent_spawn`.' }),
    waitSeconds: WaitSeconds,
  },
  { ...closed, description: 'Starts a child agent. Repeat the request with the same key until it has ended.' },
);
export type SpawnRequest = Static<typeof SpawnRequest>;

export const SpecialistRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    input: Type.Unsafe<Static<typeof AnyJson>>({ ...AnyJson, description: 'The arguments of `spawn_specialist`.' }),
    tainted: Type.Optional(Type.Boolean({ description: 'The session of the agent has untrusted content.' })),
    waitSeconds: WaitSeconds,
  },
  {
    ...closed,
    description: 'Starts a specialist for one task. Repeat the request with the same key until it has ended.',
  },
);
export type SpecialistRequest = Static<typeof SpecialistRequest>;

export const KillRequest = Type.Object(
  { deliveryToken: DeliveryToken, agent: AgentName, waitSeconds: WaitSeconds },
  { ...closed, description: 'Ends a child agent.' },
);
export type KillRequest = Static<typeof KillRequest>;

export const ChildState = Type.Object(
  {
    name: Type.String({ description: 'The name of the child.' }),
    state: Type.Enum(['Requested', 'Done', 'Refused']),
    reason: Type.Optional(Type.String({ description: 'Why it was refused.' })),
    ticket: Type.Optional(Type.String({ description: 'Of a specialist that has its task: the ticket of the task.' })),
  },
  { ...closed, description: 'The state of a request about a child.' },
);
export type ChildState = Static<typeof ChildState>;

export const ListAgentsRequest = Type.Object({ deliveryToken: DeliveryToken }, closed);
export type ListAgentsRequest = Static<typeof ListAgentsRequest>;

export const KnownAgents = Type.Object(
  {
    agents: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          description: Type.Optional(Type.String()),
          relation: Type.Enum(['Child', 'Peer', 'Template'], {
            description: '`Template`: the agent may start copies of it.',
          }),
          suspended: Type.Boolean(),
        },
        closed,
      ),
    ),
    complete: Type.Boolean({ description: 'False when there are more agents than the list has.' }),
  },
  { ...closed, description: 'The agents that the agent may message, end or copy.' },
);
export type KnownAgents = Static<typeof KnownAgents>;
