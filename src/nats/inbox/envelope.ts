import type { Envelope } from '../../bus/port.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { spanContextOf } from '../../telemetry/traceparent.ts';

const TEXT_MEMBERS = ['id', 'from', 'to', 'session', 'root', 'deadline', 'time'] as const;
const MAX_NAME = 512;
const MAX_DEPTH = 100;

/**
 * Parses a message from the inbox, copying only known members; undefined for an invalid message. The input is untrusted: every
 * client that may publish to the inbox could have written it. An invalid `traceparent` header is left out.
 */
export function parseEnvelope(value: Json | undefined, traceparent?: string): Envelope | undefined {
  if (!isJsonObject(value) || typeof value.text !== 'string') return undefined;
  if (!TEXT_MEMBERS.every((name) => isName(value[name])) || !isDepth(value.depth)) return undefined;
  const { id, from, to, session, text, root, depth, deadline, time } = value as unknown as Envelope;
  if (Number.isNaN(Date.parse(deadline)) || Number.isNaN(Date.parse(time))) return undefined;
  const trace = traceparent !== undefined && spanContextOf(traceparent) !== undefined ? { traceparent } : {};
  return { id, from, to, session, text, root, depth, deadline, time, ...trace };
}

function isDepth(value: Json | undefined): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DEPTH;
}

function isName(value: Json | undefined): boolean {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME;
}
