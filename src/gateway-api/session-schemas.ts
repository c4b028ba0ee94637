import { type Static, Type } from 'typebox';
import type { MemoryHit as StoredMemory, SessionHistory as StoredHistory } from '../agent/ports.ts';
import { closed } from '../api/v1alpha1/common.ts';
import { AnyJson } from '../tools/event-schema/parts.ts';
import { ModelMessage } from './model-schemas.ts';
import { DeliveryToken, describes } from './schema-parts.ts';

const Sequence = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Number of items.' });

export const AppendRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    afterSeq: Sequence,
    items: Type.Array(ModelMessage, { maxItems: 2_000 }),
    tainted: Type.Optional(Type.Boolean({ description: 'The items contain untrusted content.' })),
  },
  closed,
);
export type AppendRequest = Static<typeof AppendRequest>;
export const AppendResponse = Type.Object({ seq: Sequence }, closed);

export const SessionHistory = describes<StoredHistory>()(
  Type.Object(
    {
      seq: Sequence,
      items: Type.Array(ModelMessage),
      tainted: Type.Boolean({ description: 'Untrusted content has entered the session.' }),
    },
    { ...closed, description: 'The history of a session.' },
  ),
);

export const MemoryValue = Type.Object({ value: AnyJson }, closed);
export type MemoryValue = Static<typeof MemoryValue>;

export const MemoryQuery = Type.Object(
  { query: Type.String({ maxLength: 1_024 }), limit: Type.Integer({ minimum: 1, maximum: 100 }) },
  closed,
);
export const MemoryHits = Type.Array(
  describes<StoredMemory>()(Type.Object({ key: Type.String(), value: AnyJson }, closed)),
  { description: 'Best match first.' },
);
