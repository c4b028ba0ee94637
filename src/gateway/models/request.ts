import { type Static, Type } from 'typebox';
import { TemperError } from '../../lib/errors.ts';
import { type Json, type JsonObject, jsonDepth } from '../../lib/json.ts';
import type { ResolvedModel, ResolvedRequest } from '../../models/pipeline.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import { closed } from '../http/schemas.ts';

const text = (maxLength: number) => Type.String({ maxLength });
const name = (maxLength: number) => Type.String({ minLength: 1, maxLength });

/** Characters of one text. The body limit bounds the whole request. */
const MAX_TEXT = 2_000_000;
const MAX_SCHEMA_CHARACTERS = 65_536;
const MAX_SCHEMA_DEPTH = 40;

const Call = Type.Object({ id: name(256), name: text(256), arguments: text(MAX_TEXT) });
export const Message = Type.Union([
  Type.Object({ role: Type.Literal('user'), text: text(MAX_TEXT), message: Type.Optional(text(512)) }),
  Type.Object({
    role: Type.Literal('assistant'),
    text: text(MAX_TEXT),
    toolCalls: Type.Array(Call, { maxItems: 256 }),
  }),
  Type.Object({
    role: Type.Literal('tool'),
    toolCallId: name(256),
    name: text(256),
    text: text(MAX_TEXT),
    isError: Type.Boolean(),
  }),
]);
const Tool = Type.Object({
  name: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
  description: text(16_384),
  inputSchema: Type.Record(Type.String(), Type.Unknown()),
});

/** Unknown members of `request` are accepted and dropped: the gateway rebuilds the request. */
export const StreamBody = Type.Object(
  {
    deliveryToken: name(8_192),
    request: Type.Object({
      model: name(256),
      system: text(MAX_TEXT),
      messages: Type.Array(Message, { minItems: 1, maxItems: 5_000 }),
      tools: Type.Array(Tool, { maxItems: 256 }),
      maxOutputTokens: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
      temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
      responseFormat: Type.Optional(Type.Literal('json')),
    }),
  },
  closed,
);
type StreamBody = Static<typeof StreamBody>;

export const EmbedBody = Type.Object({ texts: Type.Array(name(32_768), { minItems: 1, maxItems: 64 }) }, closed);

/**
 * The request for the provider: only known members, and at most the agent's limit of output tokens. Throws TEMPER_REQUEST_INVALID for a
 * tool schema beyond its limits.
 */
export function sanitizeRequest(
  given: StreamBody['request'],
  { model, maxOutputTokens }: { model: ResolvedModel; maxOutputTokens: number },
): ResolvedRequest {
  const { system, temperature, responseFormat } = given;
  return {
    model,
    system,
    messages: given.messages.map(rebuiltMessage),
    tools: given.tools.map(({ name: tool, description, inputSchema }) => ({
      name: tool,
      description,
      inputSchema: checkedSchema(tool, inputSchema as JsonObject),
    })),
    maxOutputTokens: Math.min(given.maxOutputTokens, maxOutputTokens),
    ...(temperature === undefined ? {} : { temperature }),
    ...(responseFormat === undefined ? {} : { responseFormat }),
  };
}

/** A history item for storage. A user item keeps its message id, which identifies a redelivered message. */
export function storedMessage(item: Static<typeof Message>): ModelMessage {
  const rebuilt = rebuiltMessage(item);
  if (item.role !== 'user' || rebuilt.role !== 'user' || item.message === undefined) return rebuilt;
  return { ...rebuilt, message: item.message };
}

function rebuiltMessage(message: StreamBody['request']['messages'][number]): ModelMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', text: message.text };
    case 'assistant':
      return { role: 'assistant', text: message.text, toolCalls: message.toolCalls.map(rebuiltCall) };
    case 'tool': {
      const { toolCallId, name: tool, text: content, isError } = message;
      return { role: 'tool', toolCallId, name: tool, text: content, isError };
    }
    default:
      return message satisfies never;
  }
}

function rebuiltCall({ id, name: tool, arguments: input }: ToolCall): ToolCall {
  return { id, name: tool, arguments: input };
}

function checkedSchema(tool: string, schema: JsonObject): JsonObject {
  const characters = JSON.stringify(schema).length;
  if (characters <= MAX_SCHEMA_CHARACTERS && jsonDepth(schema as Json, MAX_SCHEMA_DEPTH + 1) <= MAX_SCHEMA_DEPTH)
    return schema;
  const limits = `${MAX_SCHEMA_CHARACTERS} characters and ${MAX_SCHEMA_DEPTH} levels`;
  throw new TemperError('TEMPER_REQUEST_INVALID', `the inputSchema of tool "${tool}" exceeds ${limits}`);
}
