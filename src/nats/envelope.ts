import type { Envelope } from '../bus/port.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import { spanContextOf } from '../telemetry/traceparent.ts';

const TEXTS = ['id', 'from', 'to', 'session', 'root', 'deadline', 'time'] as const;
const LONGEST_NAME = 512;
const DEEPEST = 100;

/**
 * A message as it lay in the inbox, member by member; nothing when it is none. Whoever may publish could have put it there. A header
 * that is no `traceparent` is left out.
 */
export function envelopeFrom(value: Json | undefined, traceparent?: string): Envelope | undefined {
  if (!isJsonObject(value) || typeof value.text !== 'string') return undefined;
  if (!TEXTS.every((name) => isName(value[name])) || !isDepth(value.depth)) return undefined;
  const { id, from, to, session, text, root, depth, deadline, time } = value as unknown as Envelope;
  if (Number.isNaN(Date.parse(deadline)) || Number.isNaN(Date.parse(time))) return undefined;
  const traced = traceparent !== undefined && spanContextOf(traceparent) !== undefined ? { traceparent } : {};
  return { id, from, to, session, text, root, depth, deadline, time, ...traced };
}

function isDepth(value: Json | undefined): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= DEEPEST;
}

function isName(value: Json | undefined): boolean {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME;
}
