import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { BrokeredCallRequest } from '../brokered/brokered-schemas.ts';

const ObjectId = Type.String({ pattern: '^[0-9a-f]{40}$' });
const MAX_KNOWN = 200;

/** A repository that a connection names for the namespace of the agent. */
export const AgentRepository = Type.Object(
  {
    url: Type.String({ maxLength: 2_048, description: 'As `git clone` takes it.' }),
    private: Type.Optional(Type.Literal(true, { description: 'Its hosts are in a private network.' })),
  },
  closed,
);
export type AgentRepository = Static<typeof AgentRepository>;

const RepositoryQuestion = Type.Union(
  [
    Type.Object({ kind: Type.Literal('Name'), name: Type.String({ minLength: 1, maxLength: 300 }) }, closed),
    Type.Object({ kind: Type.Literal('Branch') }, closed),
    Type.Object(
      { kind: Type.Literal('Commit'), commit: ObjectId, depth: Type.Integer({ minimum: 1, maximum: 100 }) },
      closed,
    ),
    Type.Object(
      {
        kind: Type.Literal('Since'),
        commit: ObjectId,
        haves: Type.Array(ObjectId, { maxItems: MAX_KNOWN }),
        shallow: Type.Array(ObjectId, { maxItems: MAX_KNOWN }),
      },
      closed,
    ),
  ],
  {
    description:
      'The commit of a name; what the server has for the branch of a push; a commit with a part of its history; or the history since what is known.',
  },
);
export type RepositoryQuestion = Static<typeof RepositoryQuestion>;

export const RepositoryReadRequest = Type.Object(
  { ...BrokeredCallRequest.properties, question: RepositoryQuestion },
  {
    ...closed,
    description:
      'A question about the repository that a call of a git tool names. The gateway decides about the whole call.',
  },
);
export type RepositoryReadRequest = Static<typeof RepositoryReadRequest>;
