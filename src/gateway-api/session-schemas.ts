import { type Static, Type } from 'typebox';
import { ITEM_ORIGINS } from '../models/item-origin.ts';
import type { ModelMessage as PortMessage } from '../models/port.ts';
import type {
  MemoryHit as StoredMemory,
  MemoryKeys as StoredKeys,
  MemoryValue as StoredValue,
  SessionHistory as StoredHistory,
} from '../agent/ports.ts';
import { MAX_HITS } from '../agent/tools/memory-tools.ts';
import { closed } from '../api/v1alpha1/common.ts';
import { AnyJson } from '../tools/event-schema/parts.ts';
import { DeliveryToken, describes } from './schema-parts.ts';

const text = (maxLength: number) => Type.String({ maxLength });
const name = (maxLength: number) => Type.String({ minLength: 1, maxLength });

/** Characters of one text. The body limit bounds the whole request. */
export const MAX_TEXT = 2_000_000;

/** More than a snapshot of 64 KiB with the names of members that it does not hold. */
const MAX_MEMORY_TEXT = 200_000;

const count = Type.Number({ minimum: 0 });
const ItemOrigin = Type.Enum([...ITEM_ORIGINS], { description: 'Where the text of the item came from.' });
export const ToolCallItem = Type.Object({ id: name(256), name: text(256), arguments: text(MAX_TEXT) });
export const ModelMessage = describes<PortMessage>()(
  Type.Union([
    Type.Object({
      role: Type.Literal('user'),
      text: text(MAX_TEXT),
      message: Type.Optional(text(512)),
      origin: Type.Optional(ItemOrigin),
      summary: Type.Optional(
        Type.Object({
          items: count,
          origins: Type.Optional(Type.Array(ItemOrigin, { maxItems: ITEM_ORIGINS.length })),
        }),
      ),
    }),
    Type.Object({
      role: Type.Literal('assistant'),
      text: text(MAX_TEXT),
      toolCalls: Type.Array(ToolCallItem, { maxItems: 256 }),
      request: Type.Optional(
        Type.Object({ model: name(256), estimated: count, counted: count, refused: Type.Optional(count) }),
      ),
    }),
    Type.Object({
      role: Type.Literal('tool'),
      toolCallId: name(256),
      name: text(256),
      text: text(MAX_TEXT),
      isError: Type.Boolean(),
      origin: Type.Optional(ItemOrigin),
      journal: Type.Optional(Type.Literal(true, { description: 'An entry of the journal of a run of code.' })),
      memory: Type.Optional(
        Type.String({ maxLength: MAX_MEMORY_TEXT, description: 'The memory of the session after a run of code.' }),
      ),
    }),
  ]),
);

const Sequence = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Number of items.' });

const appendMembers = {
  afterSeq: Sequence,
  items: Type.Array(ModelMessage, { maxItems: 2_000 }),
  tainted: Type.Optional(Type.Boolean({ description: 'The items contain untrusted content.' })),
  private: Type.Optional(Type.Boolean({ description: 'The session has private data.' })),
};
export const SessionAppend = Type.Object(appendMembers, {
  ...closed,
  description: 'Items for the session of the message; 409 after a concurrent write. An equal append is stored once.',
});
export type SessionAppend = Static<typeof SessionAppend>;

export const AppendRequest = Type.Object({ deliveryToken: DeliveryToken, ...appendMembers }, closed);
export type AppendRequest = Static<typeof AppendRequest>;
export const AppendResponse = Type.Object({ seq: Sequence }, closed);

export const SessionHistory = describes<StoredHistory>()(
  Type.Object(
    {
      seq: Sequence,
      items: Type.Array(ModelMessage),
      tainted: Type.Boolean({ description: 'Untrusted content has entered the session.' }),
      private: Type.Optional(Type.Boolean({ description: 'Private data has entered the session.' })),
    },
    { ...closed, description: 'The history of a session.' },
  ),
);

const Tainted = Type.Boolean({ description: 'A session with untrusted content wrote it.' });

export const MemoryValue = describes<StoredValue>()(Type.Object({ value: AnyJson, tainted: Tainted }, closed));

export const MemoryWrite = Type.Object(
  {
    value: AnyJson,
    tainted: Type.Optional(
      Type.Boolean({ description: 'The session has untrusted content that the gateway may not know of.' }),
    ),
  },
  closed,
);
export type MemoryWrite = Static<typeof MemoryWrite>;

export const MemoryDeleted = Type.Object(
  { deleted: Type.Boolean({ description: 'Whether there was a value.' }) },
  closed,
);

export const MemoryKeysQuery = Type.Object(
  { prefix: Type.String({ maxLength: 256 }), limit: Type.Integer({ minimum: 1, maximum: 1_000 }) },
  closed,
);
export const MemoryKeys = describes<StoredKeys>()(
  Type.Object(
    {
      keys: Type.Array(Type.String()),
      complete: Type.Boolean({ description: 'False when there are more keys.' }),
      tainted: Type.Boolean({ description: 'A session with untrusted content wrote one of the keys.' }),
    },
    { ...closed, description: 'Sorted keys.' },
  ),
);

export const MemoryQuery = Type.Object(
  { query: Type.String({ maxLength: 1_024 }), limit: Type.Integer({ minimum: 1, maximum: MAX_HITS }) },
  closed,
);
export const MemoryHits = Type.Array(
  describes<StoredMemory>()(Type.Object({ key: Type.String(), value: AnyJson, tainted: Tainted }, closed)),
  { description: 'Best match first.' },
);
