import { type Static, Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import type { ModelEvent, ModelRequest, RepeatedCall } from '../models/port.ts';
import { AnyJson, Code } from '../tools/event-schema/parts.ts';
import { MAX_TEXT, ModelMessage, SessionAppend, ToolCallItem } from './session-schemas.ts';
import { AnswerSignature, AnyObject, DeliveryToken, describes } from './schema-parts.ts';

const text = (maxLength: number) => Type.String({ maxLength });
const name = (maxLength: number) => Type.String({ minLength: 1, maxLength });

const count = Type.Number({ minimum: 0 });
const Tool = Type.Object({
  name: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
  description: text(16_384),
  inputSchema: AnyObject,
});

/** Unknown members of `request` are accepted and dropped: the gateway rebuilds the request. */
export const StreamRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    append: Type.Optional(SessionAppend),
    request: describes<ModelRequest>()(
      Type.Object({
        model: name(256),
        system: text(MAX_TEXT),
        messages: Type.Array(ModelMessage, { minItems: 1, maxItems: 5_000 }),
        tools: Type.Array(Tool, { maxItems: 256 }),
        maxOutputTokens: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
        temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
        responseFormat: Type.Optional(Type.Literal('json')),
      }),
    ),
  },
  {
    ...closed,
    description:
      'A model call for a message. The delivery token determines the accounts it is charged to. `append` is stored meanwhile; the line `end` follows when it is.',
  },
);
export type StreamRequest = Static<typeof StreamRequest>;

type End = Extract<ModelEvent, { type: 'end' }>;
/** The end may have the signature of the answer. */
const Event = describes<Exclude<ModelEvent, End> | (End & { signature?: string })>()(
  Type.Union([
    Type.Object({ type: Type.Literal('text'), text: Type.String() }, closed),
    Type.Object({ type: Type.Literal('reasoning'), text: Type.String() }, closed),
    Type.Object({ type: Type.Literal('tool-call'), call: ToolCallItem }, closed),
    Type.Object({ type: Type.Literal('provider'), name: Type.String(), data: AnyJson }, closed),
    Type.Object(
      {
        type: Type.Literal('end'),
        stopReason: Type.Enum(['stop', 'tool-calls', 'length', 'refusal', 'other']),
        usage: Type.Object(
          {
            inputTokens: count,
            outputTokens: count,
            cachedInputTokens: count,
            cacheCreationInputTokens: Type.Optional(count),
          },
          closed,
        ),
        model: Type.String(),
        signature: Type.Optional(AnswerSignature),
      },
      closed,
    ),
  ]),
);

const RetryLine = describes<{ type: 'retry' } & RepeatedCall>()(
  Type.Object(
    { type: Type.Literal('retry'), model: Type.String(), attempt: count, code: Code, milliseconds: count },
    { ...closed, description: 'The call failed and is repeated. Only for pods that ask for it.' },
  ),
);

/** One line of a model's response; the last line is `end` or `error`. Empty lines are keep-alive. */
export const ModelStreamLine = Type.Union(
  [
    ...Event.anyOf,
    RetryLine,
    Type.Object(
      {
        type: Type.Literal('error'),
        code: Code,
        message: Type.String(),
        retry: Type.Optional(
          Type.Union([Type.Literal('backoff'), Type.Integer({ minimum: 0 })], {
            description: 'A repeated call may succeed: after this many milliseconds, or with increasing waits.',
          }),
        ),
      },
      closed,
    ),
  ],
  { $id: 'ModelStreamLine', description: 'A line of a model’s response. The last line is `end` or `error`.' },
);
export type ModelStreamLine = Static<typeof ModelStreamLine>;

export const EmbedRequest = Type.Object(
  { texts: Type.Array(name(32_768), { minItems: 1, maxItems: 64 }) },
  { ...closed, description: 'Texts to embed as vectors.' },
);
export type EmbedRequest = Static<typeof EmbedRequest>;
export const EmbedResponse = Type.Object(
  { vectors: Type.Array(Type.Array(Type.Number()), { description: 'One vector per text, in the same order.' }) },
  closed,
);
