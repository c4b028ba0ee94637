import { type JsonObject, type Json, isJsonObject, member } from '../../lib/json.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ModelEvent, ModelInput } from '../../models/port.ts';
import type { FilledAnswer, ServerSentEvent } from '../../models/replay/wire/wire.ts';

/** A model call as an agent asks for it. The name of a model is not part of it: the agent of Temper has its own. */
export interface ServedRequest extends Omit<ModelInput, 'maxOutputTokens'> {
  maxOutputTokens?: number;
  isStream: boolean;
  /** The stream ends with a chunk of the usage. */
  hasUsage: boolean;
}

/** The events of one streamed answer. */
export interface AnswerStream {
  /** The events before the first part of the answer. */
  start(): ServerSentEvent[];
  next(event: ModelEvent): ServerSentEvent[];
}

/** One wire format of a provider, on the side that answers. */
export interface ServedFormat {
  /** Throws TEMPER_MODEL_FORMAT, which names the member, for a request that is malformed or that a model call of Temper cannot express. */
  read(body: JsonObject): ServedRequest;
  stream(answer: { id: string; model: string }, request: ServedRequest): AnswerStream;
  body(answer: FilledAnswer): Json;
  error(type: string, message: string): Json;
}

const MAX_MESSAGES = 10_000;
const MAX_TOOLS = 256;
const MAX_NAME_CHARACTERS = 128;
const MAX_DESCRIPTION_CHARACTERS = 65_536;

export function refused(path: string, reason: string): TemperError {
  return new TemperError('TEMPER_MODEL_FORMAT', `${path} ${reason}`);
}

/** Throws for the first member that would change the answer in a way that no model call of Temper has. Other unknown members are dropped. */
export function assertExpressible(body: JsonObject, rules: Readonly<Record<string, (value: Json) => boolean>>): void {
  for (const [name, isExpressible] of Object.entries(rules)) {
    const value = member(body, name);
    if (value === undefined || value === null || isExpressible(value)) continue;
    throw refused(name, 'has a value that this endpoint cannot express; leave it out');
  }
}

export function messagesOf(body: JsonObject): JsonObject[] {
  const messages = member(body, 'messages');
  if (!Array.isArray(messages) || messages.length === 0) throw refused('messages', 'must be a list with messages');
  if (messages.length > MAX_MESSAGES) throw refused('messages', `has ${messages.length} items, above ${MAX_MESSAGES}`);
  return messages.map((message, index) => {
    if (!isJsonObject(message)) throw refused(`messages[${index}]`, 'must be an object');
    return message;
  });
}

export function toolsOf(body: JsonObject): JsonObject[] {
  const tools = member(body, 'tools') ?? [];
  if (!Array.isArray(tools)) throw refused('tools', 'must be a list');
  if (tools.length > MAX_TOOLS) throw refused('tools', `has ${tools.length} items, above ${MAX_TOOLS}`);
  return tools.map((tool, index) => {
    if (!isJsonObject(tool)) throw refused(`tools[${index}]`, 'must be an object');
    return tool;
  });
}

export function toolSpec(tool: JsonObject, schema: string, path: string): ModelInput['tools'][number] {
  const name = requiredText(tool, 'name', path);
  if (name === '' || name.length > MAX_NAME_CHARACTERS)
    throw refused(`${path}.name`, `must have 1 to ${MAX_NAME_CHARACTERS} characters`);
  const description = member(tool, 'description') ?? '';
  if (typeof description !== 'string' || description.length > MAX_DESCRIPTION_CHARACTERS)
    throw refused(`${path}.description`, `must be a text of at most ${MAX_DESCRIPTION_CHARACTERS} characters`);
  const inputSchema = member(tool, schema) ?? { type: 'object', properties: {} };
  if (!isJsonObject(inputSchema)) throw refused(`${path}.${schema}`, 'must be an object');
  return { name, description, inputSchema };
}

export function requiredText(value: JsonObject, name: string, path: string): string {
  const text = member(value, name);
  if (typeof text !== 'string') throw refused(`${path}.${name}`, 'must be a text');
  return text;
}

/** The text of a content: text, or a list of parts of the type `text`. Other parts, such as images, are refused. */
export function textContent(content: Json | undefined, path: string, types: readonly string[] = ['text']): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw refused(path, 'must be a text or a list of parts');
  return content
    .map((part, index) => {
      const type = member(part, 'type');
      if (typeof type !== 'string' || !types.includes(type))
        throw refused(`${path}[${index}]`, `is of type ${JSON.stringify(type ?? null)}; only text is served`);
      return requiredText(part as JsonObject, type === 'refusal' ? 'refusal' : 'text', `${path}[${index}]`);
    })
    .join('\n');
}

/** The output limit and the temperature, when the request names them. */
export function samplingOf(
  body: JsonObject,
  limits: readonly string[],
): Pick<ServedRequest, 'maxOutputTokens' | 'temperature'> {
  const limit = limits.map((name) => member(body, name)).find((value) => value !== undefined && value !== null);
  if (limit !== undefined && !(typeof limit === 'number' && Number.isSafeInteger(limit) && limit > 0))
    throw refused(limits[0] ?? '', 'must be a whole number above 0');
  const temperature = member(body, 'temperature') ?? undefined;
  if (temperature !== undefined && !(typeof temperature === 'number' && temperature >= 0 && temperature <= 2))
    throw refused('temperature', 'must be a number from 0 to 2');
  return {
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    ...(temperature === undefined ? {} : { temperature }),
  };
}

export const isEmptyList = (value: Json): boolean => Array.isArray(value) && value.length === 0;
export const isFalse = (value: Json): boolean => value === false;
export const isOneOf =
  (...allowed: Json[]) =>
  (value: Json): boolean =>
    allowed.includes(value);
