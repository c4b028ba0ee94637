import { callText, parseMessageCall } from '../../bus/message-call.ts';
import { type Envelope, MESSAGE_SOURCES, type MessageSource } from '../../bus/port.ts';
import { isSessionId } from '../../agent/session/session-id.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonBytes } from '../../lib/json.ts';
import { spanContextOf } from '../../telemetry/traceparent.ts';

const TEXT_MEMBERS = ['id', 'from', 'to', 'session', 'root', 'deadline', 'time'] as const;
const MAX_NAME = 512;
const MAX_DEPTH = 100;
/** Forms of an id that can be a token of a subject: the record of an ended message has the id in its key. */
const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** A stored message; without an envelope when it is not valid. */
export interface ParsedMessage {
  envelope: Envelope | undefined;
}

export function parseMessage(data: Uint8Array, traceparent?: string): ParsedMessage {
  return { envelope: parseEnvelope(parseJsonBytes(data), traceparent) };
}

/**
 * Parses a message from the inbox, copying only known members; undefined for an invalid message. The input is untrusted: every
 * client that may publish to the inbox could have written it. An invalid `traceparent` header is left out.
 */
export function parseEnvelope(value: Json | undefined, traceparent?: string): Envelope | undefined {
  if (!isJsonObject(value)) return undefined;
  const content = contentOf(value);
  if (content === undefined) return undefined;
  if (!TEXT_MEMBERS.every((name) => isName(value[name])) || !isDepth(value.depth)) return undefined;
  const { id, from, to, session, root, depth, deadline, time } = value as unknown as Envelope;
  if (!ID.test(id) || !isSessionId(session)) return undefined;
  if (Number.isNaN(Date.parse(deadline)) || Number.isNaN(Date.parse(time))) return undefined;
  const trace = traceparent !== undefined && spanContextOf(traceparent) !== undefined ? { traceparent } : {};
  return { id, from, to, session, ...content, root, depth, deadline, time, ...writtenByGateways(value), ...trace };
}

/** The text of the message, or its call. A call that is not valid is never a text. */
function contentOf({ text, call }: JsonObject): Pick<Envelope, 'text' | 'call'> | undefined {
  if (call === undefined) return typeof text === 'string' ? { text } : undefined;
  const parsed = parseMessageCall(call);
  return parsed === undefined ? undefined : { text: callText(parsed), call: parsed };
}

/** The message as it is stored. A call has no text, so that a gateway of an older release refuses it instead of delivering its text. */
export function storedEnvelope(envelope: Envelope): Json {
  const { text: _description, ...rest } = envelope;
  return (rest.call === undefined ? envelope : rest) as unknown as Json;
}

const MAX_ANCESTORS = 100;

/** The optional members. One that is not valid is left out: a message then asks for no answer. */
export function writtenByGateways({ source, asker, answers, ancestors, tainted }: JsonObject): Partial<Envelope> {
  const isSource = MESSAGE_SOURCES.includes(source as MessageSource);
  const isPath = Array.isArray(ancestors) && ancestors.length <= MAX_ANCESTORS && ancestors.every(isId);
  return {
    ...(isSource ? { source: source as MessageSource } : {}),
    ...(tainted === true ? { tainted } : {}),
    ...(isId(asker) ? { asker } : {}),
    ...(isId(answers) ? { answers } : {}),
    ...(isPath ? { ancestors: ancestors as string[] } : {}),
  };
}

function isId(value: Json | undefined): value is string {
  return typeof value === 'string' && ID.test(value);
}

function isDepth(value: Json | undefined): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DEPTH;
}

function isName(value: Json | undefined): boolean {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME;
}
