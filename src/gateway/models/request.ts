import { TemperError } from '../../lib/errors.ts';
import { type JsonObject, jsonDepth } from '../../lib/json.ts';
import type { ResolvedModel, ResolvedRequest } from '../../models/pipeline.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type { StreamRequest } from '../../gateway-api/model-schemas.ts';
import { hasKnownTypes } from './tool-schema.ts';

type StoredSummary = NonNullable<Extract<ModelMessage, { role: 'user' }>['summary']>;

const MAX_SCHEMA_CHARACTERS = 65_536;
const MAX_SCHEMA_DEPTH = 40;

/**
 * The request for the provider: only known members, and at most the agent's limit of output tokens. Throws TEMPER_REQUEST_INVALID for a
 * tool schema beyond its limits or with an unknown type.
 */
export function sanitizeRequest(
  given: StreamRequest['request'],
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
      inputSchema: checkedSchema(tool, inputSchema),
    })),
    maxOutputTokens: Math.min(given.maxOutputTokens, maxOutputTokens),
    ...(temperature === undefined ? {} : { temperature }),
    ...(responseFormat === undefined ? {} : { responseFormat }),
  };
}

/**
 * A history item for storage. A user item keeps its message id, which identifies a redelivered message, its origin, and what it
 * summarises, and an answer the count of its request, from which the pod estimates the next one.
 */
export function storedMessage(item: ModelMessage): ModelMessage {
  const rebuilt = rebuiltMessage(item);
  if (item.role === 'user' && rebuilt.role === 'user') {
    const { message, origin, summary } = item;
    return {
      ...rebuilt,
      ...(message === undefined ? {} : { message }),
      ...(origin === undefined ? {} : { origin }),
      ...(summary === undefined ? {} : { summary: storedSummary(summary) }),
    };
  }
  if (item.role === 'assistant' && rebuilt.role === 'assistant' && item.request !== undefined) {
    const { model, estimated, counted, refused } = item.request;
    return { ...rebuilt, request: { model, estimated, counted, ...(refused === undefined ? {} : { refused }) } };
  }
  if (item.role === 'tool' && rebuilt.role === 'tool') return { ...rebuilt, ...toolMembers(item) };
  return rebuilt;
}

function storedSummary({ items, origins }: StoredSummary): StoredSummary {
  return { items, ...(origins === undefined ? {} : { origins: [...origins] }) };
}

function toolMembers({ origin, journal, memory }: Extract<ModelMessage, { role: 'tool' }>) {
  return {
    ...(origin === undefined ? {} : { origin }),
    ...(journal === true ? { journal } : {}),
    ...(memory === undefined ? {} : { memory }),
  };
}

function rebuiltMessage(message: ModelMessage): ModelMessage {
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
  if (characters > MAX_SCHEMA_CHARACTERS || jsonDepth(schema, MAX_SCHEMA_DEPTH + 1) > MAX_SCHEMA_DEPTH) {
    throw invalidSchema(tool, `exceeds ${MAX_SCHEMA_CHARACTERS} characters and ${MAX_SCHEMA_DEPTH} levels; shorten it`);
  }
  if (hasKnownTypes(schema)) return schema;
  throw invalidSchema(
    tool,
    'has a "type" that JSON Schema does not define; use string, number, integer, boolean, object, array or null',
  );
}

function invalidSchema(tool: string, what: string): TemperError {
  return new TemperError('TEMPER_REQUEST_INVALID', `the inputSchema of tool "${tool}" ${what}`);
}
